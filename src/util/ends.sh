# Gryphus: how a background command of this shell ended, as wait(2) told the shell. `$?` does not say: above 128 it may be a
# signal or an exit status. Sourced by wrapper.sh and waiter.sh.
#   await_end PID DIR   sets STATUS (`$?` of the command) and HOW: exited:CODE or signaled:NUMBER[:core]
# DIR takes notes; the shell's standard error since before the command is the file DIR/said. Traps run meanwhile, and each adds
# to the variable `got`. Other shells than these, as zsh, tell nothing more: there a status above 128 is taken for a signal.
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
  # shellcheck disable=SC2034 # for whoever asked
  case $STATUS:$state in
    *:*Done* | ?:* | ??:* | 1[01]?:* | 12[0-8]:*) HOW=exited:$STATUS ;;
    *'(core dumped)'*) HOW=signaled:$((STATUS & 127)):core ;;
    *) HOW=signaled:$((STATUS & 127)) ;;
  esac
}

# dash and ash tell by `jobs` after the wait.
await_jobs() {
  before=none STATUS=0
  while [ "$got" != "$before" ]; do # a trapped signal ends the wait, not the command
    before=$got
    wait "$1" 2>/dev/null
    status=$?
    [ "$status" -eq 127 ] && [ -n "$got" ] && [ "$STATUS" -ne 0 ] || STATUS=$status
  done
  jobs -l >"$2/jobs" 2>/dev/null
  while IFS= read -r line; do
    case $line in *" $1 "*) state=$line ;; esac
  done <"$2/jobs"
}

# Until it is waited for, bash says by `jobs` that it is done, with its status, if it ended by itself. So it is looked for, less and
# less often: a trap of CHLD would tell, but some versions of bash die of one. Its other words are the user's language's.
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
  # Or it was said already.
  [ -n "$state" ] || while IFS= read -r line; do
    case $line in *" $command "*) state=$line ;; esac
  done <"$notes/said"
}
