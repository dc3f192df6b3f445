# Gryphus: finds out how a background command of this shell ended, as wait(2) told the shell. `$?` is not enough: above
# 128 it may be a signal or an exit status. Sourced by wrapper.sh and waiter.sh.
#   await_end PID DIR   sets STATUS (`$?` of the command) and HOW: exited:CODE or signaled:NUMBER[:core]
# DIR is for notes; from before the command's start, the shell's standard error must be the file DIR/said. Traps may run
# meanwhile; each must append to the variable `got`. In shells other than these, such as zsh, a status above 128 counts
# as a signal.
await_end() {
  state='' got=${got-}
  if [ -n "${BASH_VERSION-}" ]; then await_bash "$1" "$2"; else await_jobs "$1" "$2"; fi
  case $state in
    *Done\(*)
      STATUS=${state#*Done\(}
      STATUS=${STATUS%%\)*}
      ;;
    *Done*) STATUS=0 ;;
  esac
  # shellcheck disable=SC2034 # for the caller
  case $STATUS:$state in
    *:*Done* | ?:* | ??:* | 1[01]?:* | 12[0-8]:*) HOW=exited:$STATUS ;;
    *'(core dumped)'*) HOW=signaled:$((STATUS & 127)):core ;;
    *) HOW=signaled:$((STATUS & 127)) ;;
  esac
}

# dash and ash report it in `jobs` after the wait. A status up to 128 leaves no doubt.
await_jobs() {
  before=none STATUS=0
  while [ "$got" != "$before" ]; do # a trapped signal ends the wait, not the command
    before=$got
    wait "$1" 2>/dev/null
    status=$?
    [ "$status" -eq 127 ] && [ -n "$got" ] && [ "$STATUS" -ne 0 ] || STATUS=$status
  done
  [ "$STATUS" -gt 128 ] || [ -n "$got" ] || return 0
  jobs -l >"$2/jobs" 2>/dev/null
  while IFS= read -r line; do
    case $line in *" $1 "*) state=$line ;; esac
  done <"$2/jobs"
}

# Before the wait, `jobs` of bash says "Done" with the status if the command ended by itself. So this polls, less and
# less often: a trap on CHLD would be notified, but crashes some versions of bash. Its other messages are localized.
await_bash() {
  # shellcheck disable=SC3040 # it is bash
  set -o posix
  command=$1 notes=$2
  set -- 0.02 0.02 0.05 0.1 0.1 0.2 0.5 1 2
  while kill -0 "$command"; do
    sleep "$1" >/dev/null &
    wait "$!"
    case $#:$? in
      *:1) set -- 1 ;; # it takes whole seconds only
      1:*) ;;
      *) shift ;;
    esac
  done 2>>"$notes/said"
  jobs -l >"$notes/jobs"
  wait "$command" 2>/dev/null
  STATUS=$?
  while IFS= read -r line; do
    case $line in
      *" $command "*"($STATUS)"*) state="Done($STATUS)" ;;
      *" $command "*) state=$line ;;
    esac
  done <"$notes/jobs"
  # The message may have been printed already.
  [ -n "$state" ] || while IFS= read -r line; do
    case $line in *" $command "*) state=$line ;; esac
  done <"$notes/said"
}
