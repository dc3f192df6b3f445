# Gryphus: submits attempts. Part of jobmanager.sh.

# Body: words `KEY:N`. N = 0: the present submission, or the first. N > 0: submission N, after N - 1 was fenced. $2: the
# most attempts in one submit command. Answers for each key: `sent KEY N ID`, `refused KEY N STATUS WORDS GROUP` (GROUP:
# the tag of all attempts in that command, or -), `was-refused KEY N STATUS WORDS`, `have KEY N FLAGS ID`, `taken KEY
# N`, `gone KEY`, `withdrawn KEY`, `failed KEY`.
do_commit() {
  todo=
  for word in $(body "$1"); do
    key=${word%:*} n=${word##*:}
    is_key "$key" || continue
    if [ ! -f "jobs/$key/spec" ]; then
      say "gone $key"
    elif [ -e "jobs/$key/cancelled" ]; then
      say "withdrawn $key"
    else
      current "$key"
      [ "$n" -gt 0 ] || n=$((CURRENT > 0 ? CURRENT : 1))
      if [ "$n" -le "$CURRENT" ]; then
        say_submission "$key" "$CURRENT"
      elif [ "$CURRENT" -gt 0 ] && ! fence "$key" "$CURRENT" lost; then
        say "taken $key $CURRENT"
      elif printf '%s %s\n' "$HOST" "$$" >"jobs/$key/intent.$((CURRENT + 1))"; then
        todo="$todo $key:$((CURRENT + 1))"
      else
        say "failed $key"
      fi
    fi
  done 2>/dev/null
  [ -n "$todo" ] || return 0
  ARRAYS=
  ALONE=$todo
  [ "$2" -lt 2 ] || ! command -v backend_submit_array >/dev/null || make_groups "$todo" "$2"
  sync_promise "$todo"
  crash_point jm.commit-intended
  [ -z "$ARRAYS" ] || in_parallel "$ARRAYS" "$PARALLEL_SUBMITS" submit_group
  [ -z "$ALONE" ] || backend_submit_all "$ALONE"
  crash_point jm.commit-submitted
}

# The promise must be on disk before it is answered.
sync_promise() { # $1 words KEY:N
  case $1 in
    ' '*' '*' '*' '*' '*' '*' '*' '*) [ -z "$SYNC_ALL" ] || { sync -f jobs && return; } ;;
  esac
  # shellcheck disable=SC2046 # keys have no blanks
  [ -z "$SYNC" ] || sync $(
    for word in $1; do echo "jobs/${word%:*}/spec jobs/${word%:*}/intent.${word##*:}"; done
    for tag in $ARRAYS; do echo "groups/$tag/map"; done
  )
} 2>/dev/null

say_submission() { # $1 key, $2 n
  batch_id='' flags=-
  [ -f "jobs/$1/id.$2" ] && IFS= read -r batch_id <"jobs/$1/id.$2"
  [ -d "jobs/$1/run.lock.$2" ] && flags=locked
  [ -f "jobs/$1/run.lock.$2" ] && flags=fenced
  [ -f "jobs/$1/refused.$2" ] && { say "was-refused $1 $2 $(refusal "$1" "$2")" && return; }
  say "have $1 $2 $flags $batch_id"
}

refusal() { # of submission $2 of $1: its status, and its message as one word
  {
    IFS= read -r status
    say "$status $(encoded)"
  } <"jobs/$1/refused.$2"
}

# Calls $2 and the following words with the submit words of $1 appended.
with_words() {
  spec=jobs/$1/spec
  shift
  while IFS= read -r line; do
    case $line in
      'prepared '*) continue ;;
      'submit '*) line=${line#submit } ;;
      *) break ;;
    esac
    case $line in *\\*) line=$(printf '%b.' "$line") && line=${line%.} ;; esac
    set -- "$@" "$line"
  done <"$spec"
  "$@"
}

# If the message in file $1 are about a queue, adds which ones the site has, so that the user need not look them up.
add_queues() {
  grep -qiE 'invalid partition|unknown queue|no such queue' "$1" || return 0
  queues_there >>"$1"
}
queues_there() {
  command -v backend_queues >/dev/null || return 0
  names=$(backend_queues 2>/dev/null </dev/null | LC_ALL=C sort -u | head -n 20 | tr '\n' ' ')
  [ -z "$names" ] || say "Queues there: ${names% }"
}

# One submit command for the word KEY:N. The backend's function gets the spec's submit words and sets ID.
submit_one() {
  key=${1%:*} n=${1##*:}
  # shellcheck disable=SC2034 # the backend's to use
  TAG=gryphus.$key.$n
  crash_point jm.submit-before
  ID=
  # shellcheck disable=SC2031
  with_words "$key" backend_submit "$key" "$n" 2>|"$T/said.$WORKER"
  status=$?
  crash_point jm.submit-after
  if [ "$status" -eq 0 ] && [ -n "$ID" ]; then
    ID=${ID##*"$NL"}
    printf '%s\n' "$ID" >"jobs/$key/id.$n"
    crash_point jm.submit-saved
    say "sent $key $n $ID"
  else
    # shellcheck disable=SC2031
    add_queues "$T/said.$WORKER"
    {
      say "$status"
      # shellcheck disable=SC2031
      cat "$T/said.$WORKER"
    } >|"jobs/$key/refused.$n"
    say "refused $key $n $(refusal "$key" "$n") -"
  fi
}
