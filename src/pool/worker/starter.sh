# Gryphus: runs attempts one after another. Each line of standard input names an attempt's directory, relative to the
# working directory; the same line is written to standard output when the attempt has ended. By then its directory
# contains:
#   started   if the program may have been started
#   exit      the waiter's record (waiter/waiter.x64.s), then the rest of the space reserved for it
# The shell leads its own session and process group, in which the programs run; it outlives the worker that started it.
trap : TERM HUP INT QUIT USR1 USR2 XCPU
while IFS= read -r d; do
  exec 2>"$d/said"
  # Reserve space for the exit record now: the disk may be full by then. Without that space, nothing is started.
  if ! printf '%200s\n' '' >"$d/exit"; then
    printf '%s\n' "$d"
    continue
  fi
  (. "$d/go")
  status=$?
  case $status in
    # The record was written, or could not be.
    0 | 218) status= ;;
    # No process could be created: this shell ends, as it does when it cannot fork itself.
    219) command -p rm -f "$d/started" && exit 1 ;;
    # The waiter was killed, and its program with it.
    137) status=9 ;;
    # A step before the program failed.
    *) status=$((status << 8)) ;;
  esac
  [ -z "$status" ] || printf '%016x %016x %016x %016x %016x %016x %016x %016x\n' "$status" 0 0 0 0 0 0 0 1<>"$d/exit"
  printf '%s\n' "$d"
done
