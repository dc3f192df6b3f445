# Gryphus: runs a map's tasks one after another. This text comes on standard input, and each task as one more line of it,
# `{ gryphus_run N KEY PROGRAM ARGUMENT...; }`: a line that is cut is no command. The shell leads a session of its own,
# stands where the tasks run, and outlives whoever started it by the task that it has. In the lane's directory:
#   N.out, N.err   are there as soon as task N may have been started
#   log            `N STATUS SIGNALED` when it has ended, before standard output says so: by the shell's times, with the same
#                  line before them where the status is not 0
export GRYPHUS_KEY
trap : TERM HUP INT QUIT USR1 USR2 XCPU
gryphus_run() {
  gryphus_n=$1 GRYPHUS_KEY=$2
  shift 2
  # Its own shell, so that what this one says of a signal is not written to the task's stream.
  (exec "$@" </dev/null >"$gryphus_d/$gryphus_n.out" 2>"$gryphus_d/$gryphus_n.err" 3>&-)
  gryphus_s=$?
  gryphus_g=0
  # Above 128 it may be a status or a signal: of a signal the shell says something, but of INT and PIPE.
  case $gryphus_s in
    130 | 141) gryphus_g=1 ;;
    129 | 1[3-9]? | 2??)
      [ ! -s "$gryphus_d/said" ] || gryphus_g=1
      : >"$gryphus_d/said"
      ;;
  esac
  echo "$gryphus_n $gryphus_s $gryphus_g" >&3
  [ "$gryphus_s" = 0 ] || echo "$gryphus_n $gryphus_s $gryphus_g"
  times
}
