# Gryphus: runs a map's tasks one after another. This text comes on standard input, and each task as one more line of it,
# `{ gryphus_run N FILE KEY PROGRAM ARGUMENT...; }`: a line that is cut is no command. The shell leads a session of its own,
# stands where the tasks run, and outlives whoever started it by the task that it has. In the task runner's directory:
#   FILE.out, FILE.err   its streams; other tasks had them before
#   log                  `N` as soon as it may have been started, then the waiter's record, which the worker is told, too
#   reserved             takes the records for which the disk has no room
# Where there is no record, both say `N 0 HOW`: `killed` with its waiter, `failed`: it was not started and `said` says why last; the
# worker alone, `spaceless`: nor was there room in the log.
# What was said before: standard output and descriptor 9 are the log, 8 is the worker, 7 is `reserved`; gryphus_wait runs a program
# under the waiter.
export GRYPHUS_KEY
trap : TERM HUP INT QUIT USR1 USR2 XCPU
gryphus_run() {
  gryphus_n=$1 gryphus_f=$gryphus_d/$2 GRYPHUS_KEY=$3
  shift 3
  # What may have been started must be known to whoever comes after: without room for that it is not. The line before may be cut.
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
