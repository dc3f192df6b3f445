# Gryphus: runs tasks of a map, or jobs that differ only in their arguments, one after another. This script is read from
# standard input, and each task follows as one more line, `{ gryphus_run N FILE KEY PROGRAM ARGUMENT...; }`: a truncated
# line is not a command. The shell leads its own session, stays in the directory where the tasks run, and outlives the
# worker that started it until its current task ends. In the task runner's directory:
#   FILE.out, FILE.err   the task's streams, reused from earlier tasks
#   log                  `N` before the task is started, then the waiter's record, which the worker also gets
#   reserved             takes the records for which the disk has no space
# If there is no waiter's record, the log and the worker get `N 0 HOW` instead. HOW is `killed` if the waiter was
# killed, or `failed` if the task was not started (the end of `said` gives the reason). Only the worker gets
# `spaceless`: the log had no space either.
# Set up before this text: standard output and descriptor 9 are the log, 8 is the worker, 7 is `reserved`; gryphus_wait
# runs a program under the waiter.
export GRYPHUS_KEY
trap : TERM HUP INT QUIT USR1 USR2 XCPU
gryphus_run() {
  gryphus_n=$1 gryphus_f=$gryphus_d/$2 GRYPHUS_KEY=$3
  shift 3
  # The next worker must know what may have been started: without space for that line, nothing is. The line before it may
  # be truncated.
  if ! printf '\n%s\n' "$gryphus_n"; then
    echo "$gryphus_n 0 spaceless" >&8
    return
  fi
  gryphus_wait "$@"
  case $? in
    0 | 218) return ;;
    137) gryphus_n="$gryphus_n 0 killed" ;;
    *) gryphus_n="$gryphus_n 0 failed" ;;
  esac
  echo "$gryphus_n"
  echo "$gryphus_n" >&8
}
