# Gryphus: submits similar attempts to the batch system as the elements of one array. Part of jobmanager.sh.
#
# A group is a directory groups/TAG. TAG is the first element's tag with `.a` appended, and so is never reused. Its file
# `map` has a line `KEY N` for each element, in the order of their indexes from 1, and a last line `end`. It is written
# before the submit. So even if the answer is lost, TAG and an index in the queue identify an element, and the wrapper
# finds its own attempt.

ARRAY_LIMIT=
# $1: words KEY:N, $2: the most of them in one group. Two or more of one cluster with the same submit words make a
# group, except HTCondor's parallel jobs: one cluster of them is one job. Sets ARRAYS (the groups' tags) and ALONE (the remaining words).
make_groups() {
  [ -n "$ARRAY_LIMIT" ] || find_array_limit
  most=$2
  [ "$ARRAY_LIMIT" -ge "$most" ] || most=$ARRAY_LIMIT
  [ "$most" -ge 2 ] || return 0
  # shellcheck disable=SC2046 # keys have no blanks
  LC_ALL=C awk -v "words=$1" -v "most=$most" '
    BEGIN { count = split(words, word, " "); for (i = 1; i <= count; i++) { split(word[i], p, ":"); key[i] = p[1]; n[i] = p[2] } }
    FNR == 1 { split(FILENAME, part, "/"); at = part[2]; words_of[at] = ""; more = 1 }
    !more { next }
    /^submit / { words_of[at] = words_of[at] $0 "\n"; next }
    !/^prepared / { more = 0 }
    END {
      for (i = 1; i <= count; i++) {
        cluster = key[i]
        sub(/\.[0-9]+\.[0-9]+$/, "", cluster)
        kind = cluster "\n" words_of[key[i]]
        if (kind ~ /\nsubmit universe = parallel\n/) kind = i
        if (!(kind in open) || size[open[kind]] >= most) { open[kind] = i; size[i] = 0 }
        first[i] = open[kind]
        size[first[i]]++
        next_[last[first[i]]] = i
        last[first[i]] = i
      }
      for (i = 1; i <= count; i++) {
        if (first[i] != i) continue
        tag = size[i] > 1 ? "gryphus." key[i] "." n[i] ".a" : "-"
        for (j = i; j; j = next_[j]) print tag, key[j], n[j]
      }
    }' $(for word in $1; do echo "jobs/${word%:*}/spec"; done) >|"$T/plan"
  ARRAYS=$(LC_ALL=C awk '$1 != "-" && !($1 in seen) { seen[$1] = 1; print $1 }' "$T/plan")
  [ -n "$ARRAYS" ] || return 0
  # shellcheck disable=SC2086 # tags have no blanks
  (cd groups && mkdir $ARRAYS)
  LC_ALL=C awk '
    function done() { if (file != "") { print "end" > file; close(file) } }
    $1 == "-" { next }
    { if ($1 != tag) { done(); tag = $1; file = "groups/" tag "/map" } print $2, $3 > file }
    END { done() }' "$T/plan"
  ALONE=$(LC_ALL=C awk '$1 == "-" { print $2 ":" $3 }' "$T/plan")
} 2>/dev/null

# Submits the group $1 with one command.
submit_group() {
  TAG=$1
  # shellcheck disable=SC2046 # keys and numbers
  set -- $(cat "groups/$1/map" 2>/dev/null)
  # A full disk cut the map short, so the group was never submitted; its attempts will be missed and submitted again.
  eval "[ \"\${$#-}\" = end ]" || return 0
  crash_point jm.submit-before
  ID=
  # shellcheck disable=SC2031
  with_words "$1" backend_submit_array "$TAG" "$((($# - 1) / 2))" 2>|"$T/said.$WORKER"
  status=$?
  crash_point jm.submit-after
  ID=${ID##*"$NL"}
  if [ "$status" -eq 0 ] && [ -n "$ID" ]; then
    # Default: an answer that is no array id is kept as it is.
    BEFORE=$ID AFTER='' FIRST=''
    backend_elements "$ID"
    element_ids "$TAG"
    crash_point jm.submit-saved
    return 0
  fi
  # shellcheck disable=SC2031
  add_queues "$T/said.$WORKER"
  # shellcheck disable=SC2031
  said=$(cat "$T/said.$WORKER")
  # shellcheck disable=SC2031
  word=$(encoded <"$T/said.$WORKER")
  while [ $# -gt 1 ]; do
    printf '%s\n%s\n' "$status" "$said" >|"jobs/$1/refused.$2"
    say "refused $1 $2 $status $word $TAG"
    shift 2
  done
}

# $1: the group. Answers before writing the records, so that a full disk does not lose the ids.
element_ids() {
  export BEFORE AFTER FIRST
  LC_ALL=C awk 'NF == 2 { print "sent " $1 " " $2 " " id() }'"$ELEMENT_ID" "groups/$1/map"
  LC_ALL=C awk 'NF == 2 { file = "jobs/" $1 "/id." $2; print id() > file; close(file) }'"$ELEMENT_ID" "groups/$1/map" 2>/dev/null
}
ELEMENT_ID='function id() { return ENVIRON["BEFORE"] (ENVIRON["FIRST"] == "" ? "" : NR - 1 + ENVIRON["FIRST"]) ENVIRON["AFTER"] }'

# Copies standard input, replacing each TAG[INDEX] of a group by the element's own tag. Slurm prints [N/A] after tags of
# single jobs. A line with TAG[LIST], such as 1-9:2,12, becomes a line for each element; a second [LIST] in it becomes
# the index.
elements() {
  LC_ALL=C awk '
    function load(tag, file, line, part, n) {
      loaded[tag] = 1
      file = "groups/" tag "/map"
      while ((getline line < file) > 0) if (split(line, part, " ") == 2) element[tag "[" ++n "]"] = "gryphus." part[1] "." part[2]
      close(file)
    }
    index($0, "[N/A]") { sub(/\[N\/A\]/, "") }
    function own(word) { return (word in element) ? element[word] : word }
    function each(before, tag, list, after, count, range, step, end, i, k, at, line) {
      at = index(after, "[" list "]")
      count = split(list, range, ",")
      for (i = 1; i <= count; i++) {
        if (split(range[i], step, ":") < 2) step[2] = 1
        if (split(step[1], end, "-") < 2) end[2] = end[1]
        for (k = end[1] + 0; k <= end[2] + 0; k += (step[2] > 1 ? step[2] : 1)) {
          line = at ? substr(after, 1, at - 1) k substr(after, at + length(list) + 2) : after
          print before own(tag "[" k "]") line
        }
      }
    }
    index($0, ".a[") && match($0, /gryphus\.[A-Za-z0-9._-]+\.a\[[0-9][0-9,:-]*\]/) {
      before = substr($0, 1, RSTART - 1)
      word = substr($0, RSTART, RLENGTH)
      after = substr($0, RSTART + RLENGTH)
      tag = word
      sub(/\[.*/, "", tag)
      if (!(tag in loaded)) load(tag)
      list = substr(word, length(tag) + 2, length(word) - length(tag) - 2)
      if (list !~ /^[0-9]+$/) { each(before, tag, list, after); next }
      $0 = before own(word) after
    }
    { print }'
}

# Deletes groups without attempts here, but only after a day: their last elements may still be in the queue.
sweep_groups() {
  # shellcheck disable=SC2044,SC2013 # tags have no blanks
  for map in $(find groups -name map -mtime +0); do
    for word in $(cat "$map"); do [ ! -d "jobs/$word" ] || continue 2; done
    rm -rf "${map%/map}"
  done
} 2>/dev/null
