#!/bin/sh
# Gryphus: the waiter where there is no binary for the processor (waiter.x64.s) or it cannot run: same arguments, same
# record. If it is killed, its program survives.
#   sh waiter.sh /bin/sh -c 'exec "$@"' sh PROGRAM ARGUMENT...
# ends.sh must be in the same directory.
set -u
umask 077
HERE=${0%/*}
# shellcheck source=/dev/null
. "$HERE/ends.sh"
NOTES=$HERE/notes.$$
mkdir "$NOTES" || exit 219
trap 'rm -rf "$NOTES"' EXIT
got=
for signal in TERM HUP INT QUIT USR1 USR2 XCPU; do
  # shellcheck disable=SC2064 # expand $signal now
  trap "got=\$got,$signal" "$signal"
done
# A background command ignores INT and QUIT; only newer versions of env can restore them.
if env --default-signal=INT,QUIT true 2>/dev/null; then set -- env --default-signal=INT,QUIT "$@"; fi
exec 3>&2 2>"$NOTES/said" 4<&0
(
  trap - TERM HUP INT QUIT USR1 USR2 XCPU
  exec "$@" 0<&4 4<&- 2>&3 3>&- 7>&- 8>&- 9>&-
) &
await_end "$!" "$NOTES"
case $HOW in
  exited:*) wait_status=$((${HOW#exited:} << 8)) ;;
  *:core) HOW=${HOW%:core} wait_status=$((${HOW#signaled:} | 128)) ;;
  *) wait_status=${HOW#signaled:} ;;
esac
halves() { # $1 is a time as printed by `times`, MINUTESmSECONDSs: sets WHOLE (seconds) and MICRO (microseconds)
  whole=${1#*m} && whole=${whole%s} MICRO=0
  case $whole in *[.,]*) MICRO=$((1$(printf '%.6s' "${whole#*[.,]}000000") - 1000000)) whole=${whole%[.,]*} ;; esac
  WHOLE=$((${1%%m*} * 60 + whole))
}
times >"$NOTES/times"
user=0m0s system=0m0s
{ read -r _ && read -r user system; } <"$NOTES/times"
halves "$user"
set -- "$WHOLE" "$MICRO"
halves "$system"
line=$(printf '%016x ' "$wait_status" "$1" "$2" "$WHOLE" "$MICRO" 0 "$(date +%s)" 0)
line=${line% }
{ printf '%s\n' "$line" >&9 || printf '%s\n' "$line" >&7; } 2>/dev/null
kept=$((218 * ($? != 0)))
{ printf '%s\n' "$line" >&8; } 2>/dev/null
exit "$kept"
