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
  new_job
  { echo "LSB_JOBID=$ID && export LSB_JOBID"; cat; } >"$JOB/start.sh"
  put "$JOB/name" "$name"
  # A minute is three seconds here.
  [ -z "$minutes" ] || put "$JOB/walltime" "$((minutes * 3))"
  [ -z "$held" ] || put "$JOB/state" held
  publish_job
  echo "Job <$ID> is submitted to default queue <$queue>."
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
  case $format in
    *pend_reason*) echo "$VALUE|$1|$stat|$code|$host|$reason|$why" ;;
    *) echo "$VALUE|$1|$stat" ;;
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
  [ "$1" != -s ] || shift 2
  status=0
  for id; do
    if [ ! -d "$JOBS/$id" ]; then
      echo "Job <$id>: No matching job found" >&2
      status=255
    elif get "$JOBS/$id/state" && [ "$VALUE" = ended ]; then
      echo "Job <$id>: Job has already finished" >&2
      status=255
    else
      remove_job "$id" "$(id -un)"
      echo "Job <$id> is being terminated"
    fi
  done
  exit "$status"
}

bacct() {
  shift
  printf '\nAccounting information about jobs that are: \n  - submitted by all users.\n  - completed normally or exited\n'
  for id; do
    describe "$id"
    [ "$stat" = DONE ] || [ "$stat" = EXIT ] || continue
    printf -- '------------------------------------------------------------------------------\n\n'
    printf 'Job <%s>, Job Name <%s>, User <%s>, Project <default>,\n                     Status <%s>, Queue <normal>\n' "$id" "$VALUE" "$(id -un)" "$stat"
    word=exit
    [ "$stat" = EXIT ] || word='done'
    [ "$reason" != - ] || reason="exit code $code"
    printf 'Thu Mar 13 17:32:06: Completed <%s>; %s.\n\n' "$word" "$reason"
  done
}
"$command" "$@"
