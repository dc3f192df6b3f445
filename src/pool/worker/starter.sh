# Gryphus: runs attempts one after another. Standard input names one attempt's directory a line, relative to the working
# directory; standard output answers with the same line when it has ended. Its record is on disk before that:
#   started   is there as soon as the program may have been started
#   exit      the waiter's record (waiter/waiter.x64.s), then what is left of the room for it
# The shell leads a process group and session of its own, in which the programs run; it outlives whoever started it.
trap : TERM HUP INT QUIT USR1 USR2 XCPU
while IFS= read -r d; do
  exec 2>"$d/said"
  # Room for the record of the end, taken now: by then the disk may be full. Without it nothing is begun.
  if ! printf '%200s\n' '' >"$d/exit"; then
    printf '%s\n' "$d"
    continue
  fi
  (. "$d/go")
  status=$?
  case $status in
    # The record is there, or could not be written.
    0 | 218) status= ;;
    # There could be no process: as where this shell itself can make none, it ends.
    219) command -p rm -f "$d/started" && exit 1 ;;
    # The waiter was killed, and its program with it.
    137) status=9 ;;
    # What came before the program failed.
    *) status=$((status << 8)) ;;
  esac
  [ -z "$status" ] || printf '%016x %016x %016x %016x %016x %016x %016x %016x\n' "$status" 0 0 0 0 0 0 0 1<>"$d/exit"
  printf '%s\n' "$d"
done
