#!/bin/sh
# qsub, qstat and qdel as Torque 6.1.3 prints them (test/fixtures/torque), over engine.sh. $1: the command's name.
. "${0%/*}/engine.sh"
command=$1
shift
fail() { # $1 status, $2 words
  printf '%s\n' "$2" >&2
  exit "$1"
}

qsub() {
  name='' walltime='' held='' count=''
  while [ $# -gt 0 ]; do
    case $1 in
      --version) fail 0 'Version: 6.1.3
Commit: ccdab3b43f4578573b166587f2f327a2ce9605e9' ;;
      -h) held=1 ;;
      -N) name=$2 && shift ;;
      -t) count=${2#1-} && shift ;;
      -q)
        [ "$2" = batch ] || fail 172 'qsub: submit error (Unknown queue MSG=requested queue not found)'
        shift
        ;;
      -l)
        case $2 in
          walltime=*[!0-9:]*) fail 168 'qsub: submit error (Illegal attribute or resource value for Resource_List.walltime)' ;;
          walltime=*) walltime=${2#walltime=} ;;
          nodes=* | mem=*) ;;
          *) fail 189 "qsub: submit error (Unknown resource type  Resource_List.${2%%=*})" ;;
        esac
        shift
        ;;
      -[ASemorjvW]) shift ;;
      -*) fail 2 "qsub: invalid option -- '${1#-}'
[exiting]

usage: qsub [-a date_time] [-A account_string] [-b secs]" ;;
      *) break ;;
    esac
    shift
  done
  case $name in '' | *[!!-~]*) fail 2 "[qsub: illegal -N value]

usage: qsub [-a date_time] [-A account_string] [-b secs]" ;; esac
  [ -f "$1" ] || fail 1 "qsub: script file '$1' cannot be loaded - No such file or directory"
  array='' index=1
  while [ "$index" -le "${count:-1}" ]; do
    new_job
    [ -z "$count" ] || put "$JOB/element" "${array:=$ID}[$index]"
    full=${count:+$array[$index]}
    {
      echo "PBS_JOBID=${full:-$ID}.tqhead PBS_ARRAYID=$index && export PBS_JOBID PBS_ARRAYID"
      cat "$1"
    } >"$JOB/start.sh"
    put "$JOB/name" "$name${count:+-$index}"
    [ -z "$walltime" ] || put "$JOB/walltime" "$walltime"
    [ -z "$held" ] || put "$JOB/state" held
    publish_job
    index=$((index + 1))
  done
  if [ -n "$count" ]; then echo "$array[].tqhead"; else echo "$ID.tqhead"; fi
}

find_job() { # $1 an id as the user writes it: sets FOUND, the directory's name, empty where there is none
  FOUND=${1%.tqhead}
  case $FOUND in *'['*) FOUND=$(cd "$JOBS" && grep -lxF "$FOUND" -- */element 2>/dev/null) && FOUND=${FOUND%/element} ;; esac
  [ -n "$FOUND" ] && [ -d "$JOBS/$FOUND" ] || FOUND=
}
attribute() { printf '    %s = %s\n' "$1" "$2"; }
describe() { # $1 id
  cd "$JOBS/$1" || return
  get element && echo "Job Id: ${VALUE:-$1}.tqhead"
  get name && attribute Job_Name "$VALUE"
  attribute Job_Owner "$(id -un)@tqhead"
  get state && state=$VALUE
  case $state in
    queued) attribute job_state Q ;;
    held) attribute job_state H ;;
    running) attribute job_state R ;;
    ended) attribute job_state C ;;
  esac
  attribute queue batch
  attribute server tqhead
  case $state in held) attribute Hold_Types u ;; esac
  get exit
  if [ -n "$VALUE" ] || [ "$state" = running ]; then
    attribute exec_host tqhead/0
    attribute comment 'Job started on Sun Nov 22 at 16:17'
  fi
  printf '    Variable_List = PBS_O_QUEUE=batch,PBS_O_HOME=%s,\n\tPBS_O_LOGNAME=%s,\n\tPBS_O_HOST=tqhead\n' "$HOME" "$(id -un)"
  if [ "$state" = ended ] && [ -n "$VALUE" ]; then
    if [ $((VALUE & 127)) -ne 0 ]; then code=$((128 + (VALUE & 127))); else code=$((VALUE / 256)); fi
    if [ -f overtime ]; then code=-11; elif [ -f removed ]; then code=271; fi
    attribute exit_status "$code"
  fi
  echo
}

# Elements have their own entries with -t alone; an array is not shown with them.
qstat() {
  case " $* " in
    *' -Q -f '*)
      printf 'Queue: batch\n    queue_type = Execution\n'
      exit
      ;;
    *' -Q '*)
      echo 'Queue              Max    Tot   Ena   Str   Que   Run   Hld   Wat   Trn   Ext T   Cpt'
      exit
      ;;
    *' -B '*)
      printf 'Server: tqhead\n    server_state = Active\n    keep_completed = 300\n'
      exit
      ;;
    *' -q '*) exit ;;
    *' -t '*) each_job describe ;;
    *) fail 2 'this fake shows elements' ;;
  esac
}

qdel() {
  status=0
  case $1 in -p)
    for word; do :; done
    fail 159 "qdel: Unauthorized Request  MSG=operation not permitted $word"
    ;;
  esac
  for word; do
    find_job "$word"
    id=$FOUND
    if [ -z "$id" ]; then
      echo "qdel: nonexistent job id: $word" >&2
      status=153
    elif get "$JOBS/$id/state" && [ "$VALUE" = ended ]; then
      echo "qdel: Request invalid for state of job MSG=invalid state for job - COMPLETE $word" >&2
      status=170
    else
      remove_job "$id" "$(id -un)"
    fi
  done
  exit "$status"
}
"$command" "$@"
