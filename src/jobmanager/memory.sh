# Gryphus: how much memory a job uses. Sourced by the wrapper, and by fork-worker.sh, which watches many jobs on one
# machine.

# Sets MEMORY: the KB used now by process $1 and its descendants; 0 if unknown. Starts no processes.
memory_of() {
  MEMORY=0 level=$1
  while [ -n "$level" ]; do
    below=
    for pid in $level; do
      while read -r name value _; do
        case $name in VmRSS:) MEMORY=$((MEMORY + value)) && break ;; esac
      done <"/proc/$pid/status"
      for file in "/proc/$pid/task"/*/children; do
        children=
        read -r children <"$file"
        below="$below $children"
      done
    done
    level=${below#"${below%%[! ]*}"}
  done
} 2>/dev/null

# Writes MEMORY into the directory $1 if it is a new maximum.
note_memory() {
  most=0
  [ -r "$1/memory" ] && read -r most <"$1/memory"
  [ "$MEMORY" -le "${most:-0}" ] || printf '%s\n' "$MEMORY" >|"$1/memory"
} 2>/dev/null

# Measures process $1, less and less often, for as long as it lives; results go into the directory $2.
watch_one() {
  pause=1
  while sleep "$pause" && kill -0 "$1"; do
    memory_of "$1"
    note_memory "$2"
    [ "$pause" -ge 16 ] || pause=$((pause * 2))
  done
}
