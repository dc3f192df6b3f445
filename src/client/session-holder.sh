# Written by Gryphus: keeps what the job was given while the session of its user runs beside it (session-begin.sh).
at=${_CONDOR_SCRATCH_DIR:-$PWD}/.gryphus-session
umask 077
export -p >"$at-new" && mv "$at-new" "$at-environment" || exit 1
waited=0
while [ ! -s "$at-end" ]; do
  [ -e "$at-begun" ] || waited=$((waited + 1))
  if [ "$waited" -gt 300 ]; then
    echo 'gryphus: no session came within five minutes.' >&2
    break
  fi
  sleep 1
done
status=$(cat "$at-end" 2>/dev/null)
# They are no results.
rm -f "$at-environment" "$at-begun" "$at-end"
exit "${status:-1}"
