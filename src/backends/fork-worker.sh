#!/bin/sh
# Gryphus: runs waiting jobs one after another in one slot (fork.sh); ends when no job waits.
#   fork-worker.sh ROOT BIN SLOT HOST BOOT RESET
set -uC
umask 077
ROOT=$1 BIN=$2 SLOT=$3 HOST=$4 BOOT=$5 RESET=$6
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

run_one() { # $1 name: SEQ-KEY:N
  [ "$((turn % 64))" -ne 0 ] || set_clock
  turn=$((turn + 1))
  claim=fork/running/$1@$SLOT
  mv "fork/queue/$1" "$claim" 2>/dev/null || return
  word=${1#*-}
  $SETSID sh "$BIN/wrapper.sh" "$ROOT" "${word%:*}" "${word##*:}" 'HUP INT QUIT USR1 USR2 XCPU' "${1%%-*}" "$RESET" "$CLOCK" </dev/null >/dev/null 2>&1 &
  pid=$!
  start_of "$pid"
  printf '%s\n' "$pid $PSTART $BOOT $HOST" >|"$claim"
  wait "$pid"
  # Anything that the program left running in its process group ends with it.
  [ -z "$SETSID" ] || kill -KILL "-$pid" 2>/dev/null
  ended="$ended $claim"
  # What left no record of its end must not be taken for running.
  if [ ! -f "jobs/${word%:*}/exit" ] || [ "$((turn % 16))" -eq 0 ]; then drop_ended; fi
}

# The names of ended jobs are removed many at a time; what a killed worker leaves of them, fork_repair finds.
ended=
drop_ended() {
  # shellcheck disable=SC2086 # names without blanks
  [ -z "$ended" ] || rm -f $ended
  ended=
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
    for claim in fork/running/*@"$SLOT"; do
      read -r pid _ <"$claim" || continue
      word=${claim#fork/running/*-} && word=${word%@*}
      # The wrapper is not part of the job. The list of its children has no line end.
      child=
      read -r child _ <"/proc/$pid/task/$pid/children"
      memory_of "$child"
      note_memory "jobs/${word%:*}/run.lock.${word##*:}"
    done
  done
} </dev/null >/dev/null 2>&1
watch_slot &
WATCHER=$!
trap 'kill -KILL "$WATCHER" 2>/dev/null' EXIT

while printf '%s\n' "$SELF" 2>/dev/null >"fork/slot.$SLOT"; do
  found=1
  while [ -n "$found" ]; do
    found=
    for file in fork/queue/*; do
      [ -f "$file" ] || continue
      found=1
      run_one "${file#fork/queue/}"
    done
  done
  drop_ended
  rm -f "fork/slot.$SLOT"
  # A job that arrived after the last look but before the slot was released found no worker.
  set -- fork/queue/*
  [ -f "$1" ] || exit 0
done
