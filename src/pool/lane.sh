# Gryphus: runs a map's tasks one after another. This text comes on standard input, and each task as one more line of it,
# `{ gryphus_run N FILE KEY PROGRAM ARGUMENT...; }`: a line that is cut is no command. The shell leads a session of its own,
# stands where the tasks run, and outlives whoever started it by the task that it has. In the lane's directory:
#   FILE.out, FILE.err   its streams; other tasks had them before
#   log                  `N` as soon as it may have been started, `N STATUS HOW` when it has ended: 1 by a signal, 2 it could not
#                        be started and `said` says why, 3 nor had its beginning room in the log, else 0. Then standard output says so: by the shell's times, with
#                        the same line before them where the status is not 0
# gryphus_apart is set where a task must have a copy of this shell for itself; without, dash starts it by vfork, at half the cost.
export GRYPHUS_KEY
trap : TERM HUP INT QUIT USR1 USR2 XCPU
gryphus_run() {
  gryphus_n=$1 gryphus_f=$gryphus_d/$2 GRYPHUS_KEY=$3
  shift 3
  [ ! -s "$gryphus_d/said" ] || : >"$gryphus_d/said"
  # What may have been started must be known to whoever comes after: without room for that it is not.
  if ! echo "$gryphus_n" >&3; then
    echo "$gryphus_n 1 3"
    times
    return
  fi
  if [ -n "$gryphus_apart" ]; then
    # What this shell says of a signal is not written to the task's stream.
    (exec "$@" </dev/null >"$gryphus_f.out" 2>"$gryphus_f.err" 3>&-)
  else
    "$@" </dev/null >"$gryphus_f.out" 2>"$gryphus_f.err" 3>&-
  fi
  gryphus_s=$?
  gryphus_g=0
  # Above 128 it may be a status or a signal: of a signal the shell says something, but of INT and PIPE.
  case $gryphus_s in
    0) ;;
    130 | 141) gryphus_g=1 ;;
    129 | 1[3-9]? | 2??)
      if [ -s "$gryphus_d/said" ]; then gryphus_g=1; elif [ -z "$gryphus_apart" ]; then gryphus_word && gryphus_g=1; fi
      ;;
    *) [ ! -s "$gryphus_d/said" ] || gryphus_g=2 ;;
  esac
  echo "$gryphus_n $gryphus_s $gryphus_g" >&3 || gryphus_room
  [ "$gryphus_s" = 0 ] || echo "$gryphus_n $gryphus_s $gryphus_g"
  times
}
# The disk is full: the end of the task that runs finds the room that was kept for it in the file `room`.
gryphus_room() {
  command -p rm -f "$gryphus_d/room"
  { echo && echo "$gryphus_n $gryphus_s $gryphus_g"; } >&3
}
# Some shells (dash, ash) say it on the task's standard error, at its end: it is taken away from there. Which word it is they
# show with a program that this signal ends.
gryphus_word() {
  # Of these nobody dies; some would stop.
  case $gryphus_s in 14[5-9] | 15[016] | 19[3-9] | 2??) return 1 ;; esac
  gryphus_errors=$gryphus_f.err
  # shellcheck disable=SC2016
  { /bin/sh -c 'ulimit -c 0; kill -"$1" "$$"' sh "$((gryphus_s - 128))" >/dev/null; } 2>"$gryphus_d/word" </dev/null
  gryphus_said=$(command -p cat "$gryphus_d/word")
  [ -n "$gryphus_said" ] || return 1
  for gryphus_words in "$gryphus_said" "$gryphus_said (core dumped)"; do
    [ "$(command -p tail -c "$((${#gryphus_words} + 1))" "$gryphus_errors")" = "$gryphus_words" ] || continue
    command -p truncate -s "$(($(command -p wc -c <"$gryphus_errors") - ${#gryphus_words} - 1))" "$gryphus_errors"
    return 0
  done
  return 1
}
