# Gryphus: runs attempts one after another. Standard input names one attempt's directory a line, relative to the working
# directory; standard output answers with the same line when it has ended. Its record is on disk before that:
#   started   is there as soon as the program may have been started
#   exit      the times of this shell and of its children, then `STATUS SIGNALED end`, then what is left of the room for it
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
  signaled=0
  # Above 128 it may be a status or a signal: of a signal the shell says something, but of INT and PIPE.
  case $status in
    130 | 141) signaled=1 ;;
    129 | 1[3-9]? | 2??) [ ! -s "$d/said" ] || signaled=1 ;;
  esac
  { times && printf '%s %s end\n' "$status" "$signaled"; } 1<>"$d/exit"
  printf '%s\n' "$d"
done
