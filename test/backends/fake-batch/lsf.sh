#!/bin/sh
# bsub, bjobs, bkill and bacct as IBM Spectrum LSF 10.1's command reference shows them, over engine.sh. $1: the command's
# name.
. "${0%/*}/engine.sh"
command=$1
shift
fail() { # $1 status, $2 words
  printf '%s\n' "$2" >&2
  exit "$1"
}

bsub() {
  name='' minutes='' held='' queue=normal
  while [ $# -gt 0 ]; do
    case $1 in
      -V) fail 0 'IBM Spectrum LSF Standard 10.1.0.0, Jan 01 2026' ;;
      -rn) ;;
      -H) held=1 ;;
      -J) name=$2 && shift ;;
      -W) minutes=$2 && shift ;;
      -q)
        queue=$2
        [ "$2" = normal ] || fail 255 "$2: No such queue. Job not submitted."
        shift
        ;;
      -[ReoPnM] | -gpu) shift ;;
      *) fail 255 "bsub: illegal option -- ${1#-}
Usage: bsub [options] command [arguments]" ;;
    esac
    shift
  done
  text=$(cat)
  count='' array='' index=1
  case $name in *'[1-'*']') count=${name##*-} && count=${count%]} && name=${name%\[*} ;; esac
  while [ "$index" -le "${count:-1}" ]; do
    new_job
    [ -z "$count" ] || put "$JOB/element" "${array:=$ID}[$index]"
    {
      echo "LSB_JOBID=${array:-$ID} LSB_JOBINDEX=$((count ? index : 0)) && export LSB_JOBID LSB_JOBINDEX"
      printf '%s\n' "$text"
    } >"$JOB/start.sh"
    put "$JOB/name" "$name${count:+[$index]}"
    # A minute is three seconds here.
    [ -z "$minutes" ] || put "$JOB/walltime" "$((minutes * 3))"
    [ -z "$held" ] || put "$JOB/state" held
    publish_job
    index=$((index + 1))
  done
  echo "Job <${array:-$ID}> is submitted to default queue <$queue>."
}

find_job() { # $1 an id as the user writes it: sets FOUND, the directory's name, empty where there is none
  FOUND=$1
  case $FOUND in *'['*) FOUND=$(cd "$JOBS" && grep -lxF "$FOUND" -- */element 2>/dev/null) && FOUND=${FOUND%/element} ;; esac
  [ -n "$FOUND" ] && [ -d "$JOBS/$FOUND" ] || FOUND=
}
describe() { # $1 id: sets stat, code, host, reason, why
  cd "$JOBS/$1" || return
  code=- host=- reason=- why=-
  get state
  case $VALUE in
    queued) stat=PEND why='New job is waiting for scheduling;' ;;
    held) stat=PSUSP why='The job was suspended by the user while pending;' ;;
    running) stat=RUN host=hosta ;;
    ended)
      stat=EXIT
      if [ -f exit ]; then
        host=hosta
        get exit
        if [ $((VALUE & 127)) -ne 0 ]; then code=$((128 + (VALUE & 127))); else code=$((VALUE / 256)); fi
        [ "$VALUE" -ne 0 ] || stat=DONE code=-
      fi
      if [ -f overtime ]; then
        stat=EXIT reason='TERM_RUNLIMIT: job killed after reaching LSF run time limit'
      elif [ -f removed ]; then
        stat=EXIT reason='TERM_OWNER: job killed by owner'
      fi
      ;;
  esac
  get name
}
row() {
  describe "$1"
  number=$1
  get element && [ -z "$VALUE" ] || number=${VALUE%%\[*}
  get name
  case $format in
    *pend_reason*) echo "$VALUE|$number|$stat|$code|$host|$reason|$why" ;;
    *) echo "$VALUE|$number|$stat" ;;
  esac
}
bjobs() {
  while [ $# -gt 0 ]; do
    case $1 in
      -u) shift ;;
      -a) ;;
      -o) format=$2 && shift ;;
    esac
    shift
  done
  [ -n "$(ls "$JOBS")" ] || fail 255 'No job found'
  case $format in
    *pend_reason*) echo 'JOB_NAME|JOBID|STAT|EXIT_CODE|EXEC_HOST|EXIT_REASON|PEND_REASON' ;;
    *) echo 'JOB_NAME|JOBID|STAT' ;;
  esac
  each_job row
}

bkill() {
  force=
  case $1 in -s) shift 2 ;; -r) force=1 && shift ;; esac
  status=0
  for word; do
    find_job "$word"
    id=$FOUND
    if [ -z "$id" ]; then
      echo "Job <$word>: No matching job found" >&2
      status=255
    elif get "$JOBS/$id/state" && [ "$VALUE" = ended ]; then
      echo "Job <$word>: Job has already finished" >&2
      status=255
    else
      if ! out_of_reach "$id"; then remove_job "$id" "$(id -un)"; elif [ -n "$force" ]; then forget_job "$id" "$(id -un)"; fi
      echo "Job <$word> is being terminated"
    fi
  done
  exit "$status"
}

bacct() {
  shift
  printf '\nAccounting information about jobs that are: \n  - submitted by all users.\n  - completed normally or exited\n'
  for word; do
    find_job "$word"
    [ -n "$FOUND" ] || continue
    describe "$FOUND"
    [ "$stat" = DONE ] || [ "$stat" = EXIT ] || continue
    printf -- '------------------------------------------------------------------------------\n\n'
    printf 'Job <%s>, Job Name <%s>, User <%s>, Project <default>,\n                     Status <%s>, Queue <normal>\n' "$word" "$VALUE" "$(id -un)" "$stat"
    word=exit
    [ "$stat" = EXIT ] || word='done'
    [ "$reason" != - ] || reason="exit code $code"
    printf 'Thu Mar 13 17:32:06: Completed <%s>; %s.\n\n' "$word" "$reason"
  done
}
"$command" "$@"
