# Gryphus: carries what running jobs ask their home, and the answers. Part of jobmanager.sh.
# A request is the file asking/NAME, NAME is KEY and three words; its answer becomes jobs/KEY/answers/NAME
# (src/site/chirp.ts).

# Bytes of one request, and of all in one answer.
LONGEST_RECORD=1114112
MOST_ASKED=16777216

# $1: names that home is working on. Answers for all others `asked NAME BYTES`, then the bytes and a newline.
list_asked() {
  set +f
  left=$MOST_ASKED known=" $1 "
  set -- asking/*
  set -f
  [ -e "$1" ] || return 0
  for file; do
    name=${file#asking/}
    is_key "$name" || continue
    case $known in *" $name "*) continue ;; esac
    # Its answer was written by a JobManager that died then.
    [ ! -e "$(answer_to "$name")" ] || { rm -f "$file" && continue; }
    part 0 "$LONGEST_RECORD" "$file" >|"$T/asked" || continue
    bytes=$(($(wc -c <"$T/asked")))
    left=$((left - bytes))
    [ "$left" -ge 0 ] || break
    say "asked $name $bytes"
    cat "$T/asked"
    say
  done 2>/dev/null
  rm -f "$T/asked"
}
answer_to() { # $1 NAME
  key=${1%.*.*.*}
  printf '%s' "jobs/$key/answers/$1"
}

# Body 1: words NAME:BYTES. Body 2: their answers, one behind the other. Answers `answered NAME` for each that is on disk, or
# that nobody waits for any more.
do_answer() {
  for word in $(body "$1"); do
    name=${word%:*}
    # What cannot be written is read all the same, because the next request follows it.
    body "${word##*:}" | { cat >|"$T/answer" || { rm -f "$T/answer" && cat >/dev/null; }; } 2>/dev/null
    if [ ! -f "$T/answer" ] || ! is_key "$name"; then continue; fi
    to=$(answer_to "$name")
    if [ -e "asking/$name" ] && [ -d "${to%/*}" ]; then
      mv -f "$T/answer" "$to" || continue
      crash_point jm.answer-written
    fi
    rm -f "asking/$name" && say "answered $name"
  done
}
