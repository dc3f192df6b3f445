#!/bin/sh
# Gryphus: one round with the mailboxes of a site's workers, at the login node.
#   mailbox-store.sh ROOT MOST <REQUESTS
# Requests, one per line, handled in order:
#   put WORKER NAME SIZE   SIZE bytes follow the line and become the file, atomically
#   del WORKER NAME        deletes a letter that was read
#   drop WORKER            deletes everything of a worker that is gone
#   take                   the end of the requests
#   inventory              like take, but also reports links that an agent has taken
# Answer: lines `letter WORKER/NAME SIZE`, each followed by that many bytes, about MOST bytes in all; then `end`.
set -u
umask 077
ROOT=$1 LEFT=$2
LC_ALL=C
export LC_ALL
mkdir -p "$ROOT" && cd "$ROOT" || exit 74
verb='' worker='' name='' size=''
while read -r verb worker name size; do
  case $verb in
    put)
      [ -d "./$worker" ] || mkdir "./$worker" || exit 74
      head -c "$size" >"./$worker/$name.new" || exit 74
      [ "$(wc -c <"./$worker/$name.new")" -eq "$size" ] || exit 74
      mv -f "./$worker/$name.new" "./$worker/$name" || exit 74
      ;;
    del) rm -f "./$worker/$name" ;;
    drop) rm -rf "./${worker:?}" ;;
    take | inventory) break ;;
  esac
done
marks=
case $verb in
  take) ;;
  inventory) marks='./*/taken.*' ;;
  *) exit 65 ;;
esac
# `./` because workers' names may begin with a dash.
# shellcheck disable=SC2086 # the marks are a pattern
for file in ./*/up.* ./*/gone.* $marks; do
  case $file in *.new | *'*'*) continue ;; esac
  [ "$LEFT" -gt 0 ] || break
  size=$(wc -c <"$file" 2>/dev/null) || continue
  printf 'letter %s %d\n' "${file#./}" "$size"
  cat "$file"
  LEFT=$((LEFT - size - 100))
done
echo end
