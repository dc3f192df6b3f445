# Gryphus: reports what became of the attempts. Part of jobmanager.sh.

# Body: words `ack:EVENT` (processed, to be deleted), `asked:NAME` (requests of jobs that are being answered),
# `KEY:OUT:ERR` (streams wanted from these offsets), and those for files that grow (watching.sh). $2: 1 to query the batch
# system. $3: 1 to list everything at the site. $4: the most bytes of a stream in one answer. $5: 1 to list what jobs ask.
# $6: the most bytes of a file in one answer.
# Answers, in this order, so that what is missing in both queue and directory was in neither:
#   queue full|same|diff  after its lines `+ TAG ID REST` and `- TAG ID`; or `queue bad STATUS WORDS`
#   job KEY N FLAGS       FLAGS: c cancelled; followed by its lines `id`, `owner`, `exit`, `refused`, `fenced`, `asks`
#   event NAME LINE
#   asked NAME BYTES      of asking.sh, then the bytes and a newline
#   data KEY out|err OFFSET BYTES, then the bytes and a newline
#   size, pieces          of watching.sh
do_poll() {
  acked='' streams='' asked='' watched='' wanted=''
  for word in $(body "$1"); do
    case $word in
      ack:*) acked="$acked events/${word#ack:}" ;;
      asked:*) asked="$asked ${word#asked:}" ;;
      [wW]:*) watched="$watched $word" ;;
      p:*) wanted="$wanted $word" ;;
      *) streams="$streams $word" ;;
    esac
  done
  # shellcheck disable=SC2086 # names have no blanks
  [ -z "$acked" ] || rm -f $acked
  clock=$(date +%s)
  say "time $clock"
  [ "$2" = 0 ] || ask_queue
  [ "$3" = 0 ] || list_jobs
  list_events
  [ "$5" = 0 ] || list_asked "$asked"
  [ -z "$streams" ] || follow "$streams" "$4"
  [ -z "$watched" ] || watch_files "$watched" "$clock"
  [ -z "$wanted" ] || send_pieces "$wanted" "$6"
}

# Answers `capacity STATUS WORDS`: the backend's line about the site's cores, if it has one.
do_capacity() {
  body "$1" >/dev/null
  command -v backend_capacity >/dev/null || return 0
  answer=$(backend_capacity 2>/dev/null </dev/null)
  say "capacity $? $(printf %s "$answer" | encoded)"
}

# Prints the difference to the previous answer; only a good answer, recognized by its heading, counts.
ask_queue() {
  old=$T/queue.$((LOOKS % 2)) new=$T/queue.$(((LOOKS + 1) % 2))
  answer=$(backend_queue 2>|"$T/why" </dev/null)
  status=$?
  [ "$status" -eq 0 ] || { say "queue bad $status $(encoded <"$T/why")" && return; }
  # Avoids comparing thousands of waiting jobs one by one.
  [ -z "$ANSWER" ] || [ "$answer" != "$ANSWER" ] || { say 'queue same' && return; }
  kind='diff'
  [ -f "$old" ] || kind=full
  rm -f "$new"
  printf '%s\n' "$answer" | elements | LC_ALL=C awk -v "heading=$QUEUE_HEADING" -v "prefix=$PREFIX" -v "old=$old" -v "new=$new" '
    BEGIN { while ((getline line < old) > 0) was[line] = 1; printf "" > new }
    NR == 1 { if ($1 != heading) exit 3; next }
    index($1, prefix) == 1 {
      print > new
      here[$1 " " $2] = 1
      if (!($0 in was)) print "+ " $0
    }
    END {
      if (NR == 0) exit 3
      for (line in was) {
        split(line, part, " ")
        if (!((part[1] " " part[2]) in here)) print "- " part[1] " " part[2]
      }
    }'
  status=$?
  if [ "$status" -eq 0 ] && [ -f "$new" ]; then
    LOOKS=$((LOOKS + 1)) ANSWER=$answer
    say "queue $kind"
  else
    rm -f "$new"
    say "queue bad $status $(printf '%s\n' "$answer" | sed -n '/[^[:blank:]]/{p;q;}' | encoded)"
  fi
}
LOOKS=0
ANSWER=

list_jobs() {
  set +f
  set -- jobs/*
  set -f
  for dir; do
    key=${dir#jobs/}
    [ -f "$dir/spec" ] || continue
    list_job "$key"
  done
  # This line proves that an empty list is really empty.
  [ -r jobs ] && say all
}
list_job() { # $1 key
  dir=jobs/$1
  current "$1"
  flags=-
  [ -e "$dir/cancelled" ] && flags=c
  say "job $1 $CURRENT $flags"
  [ "$CURRENT" -gt 0 ] || return 0
  line='' lock=$dir/run.lock.$CURRENT
  [ -f "$dir/id.$CURRENT" ] && IFS= read -r line <"$dir/id.$CURRENT" && say "id $line"
  [ -f "$dir/refused.$CURRENT" ] && say "refused $(refusal "$1" "$CURRENT")"
  if [ -d "$lock" ]; then
    line=
    [ -f "$lock/owner" ] && IFS= read -r line <"$lock/owner"
    say "owner $line"
  elif [ -f "$lock" ]; then
    line=
    IFS= read -r line <"$lock"
    say "fenced $line"
  elif [ -f "$dir/asks.$CURRENT" ]; then
    IFS= read -r line <"$dir/asks.$CURRENT" && say "asks $line"
  fi
  [ -f "$dir/exit" ] && IFS= read -r line <"$dir/exit" && say "exit $line"
  return 0
}

list_events() {
  set +f
  set -- events/*
  set -f
  [ -e "$1" ] || return 0
  LC_ALL=C awk '/ \.$/ { name = FILENAME; sub(/^events\//, "", name); print "event " name " " $0 }' "$@" 2>/dev/null
  return 0
}

follow() { # $1 words KEY:OUT:ERR, $2 most bytes
  names=
  for word in $1; do
    key=${word%%:*}
    is_key "$key" && [ -f "jobs/$key/stdout" ] && names="$names jobs/$key/stdout jobs/$key/stderr"
  done
  [ -n "$names" ] || return 0
  # One call gets all sizes; only streams that grew need further processes.
  # shellcheck disable=SC2086 # names have no blanks
  wc -c $names 2>/dev/null | LC_ALL=C awk -v "words=$1" -v "cap=$2" '
    BEGIN { n = split(words, word, " "); for (i = 1; i <= n; i++) { split(word[i], p, ":"); at[p[1] "/stdout"] = p[2]; at[p[1] "/stderr"] = p[3] } }
    { name = $2; sub(/^jobs\//, "", name) }
    name in at && $1 > at[name] { left = $1 - at[name]; print $2, at[name], (left > cap ? cap : left) }' >|"$T/grown"
  while read -r name offset bytes; do
    part "$offset" "$bytes" "$name" >|"$T/chunk" || continue
    bytes=$(wc -c <"$T/chunk")
    key=${name#jobs/}
    case $name in *out) stream=out ;; *) stream=err ;; esac
    say "data ${key%/*} $stream $offset $((bytes))"
    cat "$T/chunk"
    say
  done <"$T/grown"
  rm -f "$T/chunk" "$T/grown"
}

# Body: words ID. Answers with the raw accounting of these ended jobs as lines `account LINE`, then `accounts STATUS
# WORDS`.
do_account() {
  # shellcheck disable=SC2046 # ids have no blanks
  answer=$(backend_account $(body "$1") 2>|"$T/why" </dev/null)
  status=$?
  [ -z "$answer" ] || printf '%s\n' "$answer" | elements | sed 's/^/account /'
  say "accounts $status $(encoded <"$T/why")"
}
