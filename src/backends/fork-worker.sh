#!/bin/sh
# Gryphus: runs waiting jobs one after another in one slot (fork.sh); ends when no job waits.
#   fork-worker.sh ROOT BIN SLOT HOST BOOT RESET START
# START is the program of fork-start.sh. With it, a job's wrapper is a copy of this shell; without it, a shell of its own.
set -uC
umask 077
ROOT=$1 BIN=$2 SLOT=$3 HOST=$4 BOOT=$5 RESET=$6 START=${7-}
cd "$ROOT" || exit 1
start_of() { # $1 pid, see fork.sh
  PSTART=-
  if [ -r /proc/self/stat ]; then
    IFS= read -r line <"/proc/$1/stat" || return
    # shellcheck disable=SC2086 # words of numbers
    set -- ${line##*) }
    PSTART=${20}
  else
    PSTART=$(ps -o lstart= -p "$1" | tr ' ' _)
  fi
} 2>/dev/null
SETSID=
command -v setsid >/dev/null && SETSID=setsid
start_of "$$"
SELF="$$ $PSTART $BOOT $HOST"

FORWARD='HUP INT QUIT USR1 USR2 XCPU'
if [ -n "$START" ]; then
  [ -d "fork/notes.$SLOT" ] || mkdir "fork/notes.$SLOT" || exit 1
  # shellcheck disable=SC2034 # The wrapper's, from the job's directory.
  NOTES=../../fork/notes.$SLOT
  # shellcheck source=/dev/null
  . "$BIN/wrapper.sh"
fi
# Called by the wrapper of a job when its program runs.
claim_for() { # $1 pid
  start_of "$1"
  printf '%s\n' "$1 $PSTART $BOOT $HOST $PID" 1<>"$CLAIM"
}

# A claim is made by its name, which only one can create. The job's file in the queue stays until it has ended, so that a worker
# that dies gives it back. Files are overwritten and not emptied first: what is written into an emptied file, ext4 sends to the disk at once.
take() { # $1 name: SEQ-KEY:N
  [ ! -e "fork/running/$1" ] && true >"fork/running/$1" || return
  if [ -f "fork/queue/$1" ]; then
    printf '%s\n' "@$SLOT" 1<>"fork/running/$1" && return
    # The disk is full.
    STUCK=1
  fi
  rm -f "fork/running/$1"
  return 1
} 2>/dev/null

run_one() { # $1 name: SEQ-KEY:N
  [ "$((turn % 64))" -ne 0 ] || set_clock
  turn=$((turn + 1))
  claim=fork/running/$1
  word=${1#*-}
  printf '%s\n' "$1" 1<>"fork/now.$SLOT"
  pid=
  if [ -n "$START" ]; then
    (
      set +C
      CLAIM=../../$claim
      attempt "${word%:*}" "${word##*:}" "$FORWARD" "${1%%-*}"
    ) </dev/null >/dev/null 2>&1 &
    wait "$!"
    read -r pid _ <"$claim"
    case $pid in @*) pid='' ;; esac
  else
    $SETSID sh "$BIN/wrapper.sh" "$ROOT" "${word%:*}" "${word##*:}" "$FORWARD" "${1%%-*}" "$RESET" "$CLOCK" </dev/null >/dev/null 2>&1 &
    pid=$!
    start_of "$pid"
    printf '%s\n' "$pid $PSTART $BOOT $HOST" >|"$claim"
    wait "$pid"
    [ -n "$SETSID" ] || pid=
  fi
  # Anything that the program left running in its process group ends with it.
  [ -z "$pid" ] || kill -KILL "-$pid" 2>/dev/null
  ended="$ended fork/queue/$1" claims="$claims $claim"
  # What left no record of its end must not be taken for running.
  if [ ! -f "jobs/${word%:*}/exit" ] || [ "$((turn % 16))" -eq 0 ]; then drop_ended; fi
}

# The names of ended jobs are removed many at a time, the claims last; what a killed worker leaves of them, fork_repair finds.
ended='' claims=''
drop_ended() {
  # shellcheck disable=SC2086 # names without blanks
  [ -z "$ended" ] || rm -f $ended $claims
  ended='' claims=''
}

# Sets CLOCK, see wrapper.sh: now and then, because the time of this machine may be set. Empty if date cannot tell parts of a
# second.
set_clock() {
  CLOCK=
  now=$(date +%s%N)
  case $now in
    *[!0-9]*) ;;
    ??????????????????*) IFS=' .' read -r up part _ </proc/uptime && CLOCK=$((${now%???????} - up * 100 - 1$part + 100)) ;;
  esac
} 2>/dev/null
turn=0

# Watches the memory of this slot's program for as long as the worker lives.
watch_slot() {
  # shellcheck source=/dev/null
  . "$BIN/memory.sh"
  looks=0 worker=$PSTART
  # Once the worker has ended, another process may have its number.
  while sleep "$((looks < 5 ? 1 : 5))" && start_of "$$" && [ "$PSTART" = "$worker" ]; do
    looks=$((looks + 1))
    { read -r name <"fork/now.$SLOT" && read -r pid _ _ _ wrapper <"fork/running/$name"; } || continue
    case $pid in @*) continue ;; esac
    word=${name#*-}
    # A wrapper is not part of the job. The list of its children has no line end.
    child=$pid
    [ -n "$wrapper" ] || read -r child _ <"/proc/$pid/task/$pid/children"
    memory_of "$child"
    note_memory "jobs/${word%:*}/run.lock.${word##*:}"
  done
} </dev/null >/dev/null 2>&1
some_wait() {
  for file in fork/queue/*; do
    [ ! -f "$file" ] || [ -e "fork/running/${file#fork/queue/}" ] || return 0
  done
  return 1
}

watch_slot &
WATCHER=$!
trap 'kill -KILL "$WATCHER" 2>/dev/null' EXIT

STUCK=
while [ -z "$STUCK" ] && printf '%s\n' "$SELF" 2>/dev/null >"fork/slot.$SLOT"; do
  found=1
  while [ -n "$found" ] && [ -z "$STUCK" ]; do
    found=
    for file in fork/queue/*; do
      take "${file#fork/queue/}" || continue
      found=1
      run_one "${file#fork/queue/}"
    done
  done
  drop_ended
  rm -f "fork/slot.$SLOT" "fork/now.$SLOT"
  # A job that arrived after the last look but before the slot was released found no worker.
  some_wait || exit 0
done
