#!/bin/sh
# Prints what a running job with `stream_output = true` has written to a URL, and what it goes on to write, until all of it
# is there. Usage: follow.sh URL
# GET: the command that prints the content of a URL; default: curl.
set -eu
url=$1
get() { ${GET:-curl --silent --fail} "$1"; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
at=0

# Prints what a file, whose first byte is byte $2 of the output, has after byte $at of it.
tail_of() {
  tail -c "+$((at - $2 + 1))" "$1"
  at=$(($2 + $(wc -c <"$1")))
}

while :; do
  if get "$url.parts" >"$dir/list"; then
    while read -r offset bytes sum suffix; do
      [ "$offset" -le "$at" ] && [ "$((offset + bytes))" -gt "$at" ] || continue
      # A part that is not as the list says was replaced meanwhile: the next list has another one.
      get "$url$suffix" >"$dir/part" && [ "$(sha256sum <"$dir/part")" = "$sum  -" ] || break
      tail_of "$dir/part" "$offset"
    done <"$dir/list"
  elif get "$url" >"$dir/whole"; then
    [ "$(wc -c <"$dir/whole")" -le "$at" ] || tail_of "$dir/whole" 0
    exit 0
  fi
  sleep "${EVERY:-5}"
done
