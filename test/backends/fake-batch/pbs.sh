#!/bin/sh
# qsub, qstat and qdel as OpenPBS 23.06 prints them (test/fixtures/pbs), over engine.sh. $1: the command's name.
. "${0%/*}/engine.sh"
# A MoM looks every now and then whether what it killed has ended: until then it is said to run.
export LINGER=6
command=$1
shift
fail() { # $1 status, $2 words
  printf '%s\n' "$2" >&2
  exit "$1"
}

qsub() {
  name='' walltime='' held='' begin='' count='' args=$*
  while [ $# -gt 0 ]; do
    case $1 in
      --version) echo 'pbs_version = 23.06.06' && exit ;;
      -f | -z) ;;
      -h) held=1 ;;
      -N) name=$2 && shift ;;
      -J) count=${2#1-} && shift ;;
      -a) begin=$(($(date -d "$(echo "$2" | sed 's/\(....\)\(..\)\(..\)\(..\)\(..\).\(..\)/\1-\2-\3 \4:\5:\6/')" +%s) - $(date +%s))) && shift ;;
      -q)
        [ "$2" = workq ] || fail 170 'qsub: Unknown queue'
        shift
        ;;
      -l)
        case $2 in
          walltime=*[!0-9:]*) fail 166 'qsub: Illegal attribute or resource value Resource_List.walltime' ;;
          walltime=*) walltime=${2#walltime=} ;;
          select=* | nodes=* | mem=* | place=*) ;;
          *) fail 187 "qsub: Unknown resource Resource_List.${2%%=*}" ;;
        esac
        shift
        ;;
      -[ASemorjWvP]) shift ;;
      -*) fail 2 "qsub: invalid option -- '${1#-}'" ;;
      *) break ;;
    esac
    shift
  done
  case $name in '' | *[!A-Za-z0-9_+.-]*) fail 2 "qsub: illegal -N value
usage: qsub [-a date_time] [-A account_string] [-c interval]" ;; esac
  [ ${#name} -le 230 ] || fail 2 'qsub: Job name is too long '
  [ -f "$1" ] || fail 1 'qsub: script file:: No such file or directory'
  array=
  index=1
  while [ "$index" -le "${count:-1}" ]; do
    new_job
    [ -z "$count" ] || put "$JOB/element" "${array:=$ID}[$index]"
    full=${count:+$array[$index]}
    {
      echo "PBS_JOBID=${full:-$ID}.pbshead PBS_ARRAY_INDEX=$index && export PBS_JOBID PBS_ARRAY_INDEX"
      cat "$1"
    } >"$JOB/start.sh"
    put "$JOB/name" "$name"
    put "$JOB/args" "$args"
    [ -z "$walltime" ] || put "$JOB/walltime" "$walltime"
    [ -z "$begin" ] || put "$JOB/begin" "$begin"
    [ -z "$held" ] || put "$JOB/state" held
    publish_job
    index=$((index + 1))
  done
  if [ -n "$count" ]; then echo "$array[].pbshead"; else echo "$ID.pbshead"; fi
}

attribute() { # $1 name, $2 value: long ones go on in the next line, after a tab
  printf '    %s = %s\n' "$1" "$2" | awk '{
    while (length($0) > 79) {
      cut = 79
      while (cut > 20 && substr($0, cut, 1) !~ /[ ,]/) cut--
      if (cut == 20) break
      print substr($0, 1, cut)
      $0 = "\t" substr($0, cut + 1)
    }
    print }'
}

find_job() { # $1 an id as the user writes it: sets FOUND, the directory's name, empty where there is none
  FOUND=${1%.pbshead}
  case $FOUND in *'['*) FOUND=$(cd "$JOBS" && grep -lxF "$FOUND" -- */element 2>/dev/null) && FOUND=${FOUND%/element} ;; esac
  [ -n "$FOUND" ] && [ -d "$JOBS/$FOUND" ] || FOUND=
}
parent() { # $1 the id of an array's first element
  get "$JOBS/$1/element"
  echo "Job Id: ${VALUE%%\[*}[].pbshead"
  get "$JOBS/$1/name"
  attribute Job_Name "$VALUE"
  get state
  case $VALUE in held) attribute job_state H && attribute substate 20 ;; *) attribute job_state B && attribute substate 70 ;; esac
  attribute array True
  echo
}
describe() { # $1 id
  cd "$JOBS/$1" || return
  get element
  full_id=${VALUE:-$1}
  if [ -n "$VALUE" ]; then
    case $VALUE in *'[1]') parent "$1" && cd "$JOBS/$1" ;; esac
    [ -n "$subjobs" ] || return
  fi
  get state && state=$VALUE
  get removed && removed=$VALUE
  get name
  echo "Job Id: $full_id.pbshead"
  attribute Job_Name "$VALUE"
  attribute Job_Owner "$(id -un)@pbshead"
  run='Job run at Fri Nov 20 at 23:30 on (pbshead:ncpus=1)' comment='' exit='' substate=''
  get exit && [ -n "$VALUE" ] && exit=$VALUE
  case $state in
    queued) attribute job_state Q && substate=10 comment='Not Running: Not enough free nodes available' ;;
    held) attribute job_state "$(held_state "$full_id")" && substate=20 comment="Job held by $(id -un) on Fri Nov 20 23:29:50 2026" ;;
    running)
      attribute job_state R && substate=42 comment=$run && attribute exec_host pbshead/0
      case $removed in '' | the-clock) ;; *) comment="$run and terminated by $removed@pbshead" ;; esac
      ;;
    ended)
      attribute job_state "$(ended_state "$full_id")"
      if [ -z "$exit" ]; then
        substate=91
      else
        attribute exec_host pbshead/0
        if [ $((exit & 127)) -ne 0 ]; then exit=$((256 + (exit & 127))); else exit=$((exit / 256)); fi
        substate=93 comment="$run and failed"
        [ "$exit" -ne 0 ] || { substate=92 && comment="$run and finished"; }
        if [ -f overtime ]; then
          exit=-29 comment="$run and exceeded resource walltime"
        elif [ -n "$removed" ]; then
          substate=91 exit=271 comment="$run and terminated by $removed@pbshead"
        fi
      fi
      ;;
  esac
  attribute queue workq
  attribute server pbshead
  attribute substate "$substate"
  attribute Variable_List "PBS_O_HOME=$HOME,PBS_O_LANG=C.UTF-8,PBS_O_LOGNAME=$(id -un),PBS_O_PATH=/opt/pbs/bin:/usr/bin:/bin"
  [ -z "$comment" ] || attribute comment "$comment"
  [ -z "$exit" ] || attribute Exit_status "$exit"
  get args && attribute Submit_arguments "$VALUE"
  echo
}
# Elements of a held array are said to wait.
held_state() { case $1 in *'['*) echo Q ;; *) echo H ;; esac; }
# X: an element that is over while others of its array are not.
ended_state() {
  case $1 in *'['*) ;; *) echo F && return ;; esac
  for id in $(cd "$JOBS" && grep -lF "${1%%\[*}[" -- */element); do
    get "$JOBS/${id%/element}/state"
    [ "$VALUE" = ended ] || { echo X && return; }
  done
  echo F
}
live() {
  get "$JOBS/$1/state"
  if [ "$VALUE" = ended ]; then
    get "$JOBS/$1/element"
    [ -n "$VALUE" ] && [ "$(ended_state "$VALUE")" = X ] || return 0
  fi
  describe "$1"
}

qstat() {
  history='' full='' server='' queues='' subjobs='' status=0
  while [ $# -gt 0 ]; do
    case $1 in
      -x) history=1 ;;
      -t) subjobs=1 ;;
      -f) full=1 ;;
      -B) server=1 ;;
      -Q) queues=1 ;;
      *) break ;;
    esac
    shift
  done
  if [ -n "$server" ]; then
    echo 'Server: pbshead'
    echo '    server_state = Active'
    echo '    max_array_size = 10000'
    exit
  fi
  if [ -n "$queues" ]; then
    printf 'Queue: workq\n    queue_type = Execution\n'
    exit
  fi
  [ -n "$full" ] || fail 2 'qstat: conflicting options.'
  if [ $# -eq 0 ]; then
    if [ -n "$history" ]; then each_job describe; else each_job live; fi
    exit
  fi
  subjobs=1
  for word; do
    find_job "$word"
    id=$FOUND
    if [ -z "$id" ]; then
      echo "qstat: Unknown Job Id $word" >&2
      status=153
    elif [ -z "$history" ] && get "$JOBS/$id/state" && [ "$VALUE" = ended ]; then
      echo "qstat: $word Job has finished, use -x or -H to obtain historical job information" >&2
      status=35
    else
      describe "$id"
    fi
  done
  exit "$status"
}

qdel() {
  status=0 force=
  case $1 in -W)
    [ "$2" = force ] || fail 2 'usage: qdel [-W force|suppress_email=X] [-x] job_identifier...'
    force=1
    shift 2
    ;;
  esac
  for word; do
    find_job "$word"
    id=$FOUND
    if [ -z "$id" ]; then
      echo "qdel: Unknown Job Id $word" >&2
      status=153
    elif get "$JOBS/$id/state" && [ "$VALUE" = ended ]; then
      echo "qdel: Job has finished $word" >&2
      status=35
    elif out_of_reach "$id"; then
      if [ -n "$force" ]; then
        forget_job "$id" "$(id -un)"
      else
        echo "qdel: Server could not connect to MOM $word" >&2
        status=222
      fi
    else
      remove_job "$id" "$(id -un)"
    fi
  done
  exit "$status"
}
"$command" "$@"
