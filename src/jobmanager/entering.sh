# Gryphus: enters our directories at a site. They may be below a directory that all users may write into (/tmp,
# /scratch): nobody else may have created them, or be able to change or replace them. Checks are made from inside a
# directory, so they hold whatever happens to its name. Exit status: 66 if it does not exist, 74 if it cannot be
# created, 77 if it is refused, for the reason after `gryphus-refuses` on standard error. MAKE: create a missing
# directory.
umask 077
refuse() {
  printf 'gryphus-refuses %s\n' "$1" >&2
  exit 77
}
of_us() { [ -n "$(find "$1" -prune -user "$(id -u)" 2>/dev/null)" ]; }
# shellcheck disable=SC2012 # the name of its owner is what is asked for
owner_of() { ls -ld "$1" 2>/dev/null | LC_ALL=C awk 'NR == 1 { print $3 }'; }

# Enters a directory that must belong to us alone.
enter() {
  [ -z "$MAKE" ] || [ -e "$1" ] || [ -L "$1" ] || mkdir "$1" || [ -e "$1" ] || exit 74
  [ ! -L "$1" ] || of_us "$1" || refuse "$(pwd)/${1#./} is a link that belongs to $(owner_of "$1")"
  [ -e "$1" ] || exit 66
  cd "$1" 2>/dev/null || refuse "$(pwd)/${1#./} cannot be entered; it belongs to $(owner_of "$1")"
  [ -O . ] 2>/dev/null || of_us . || refuse "$(pwd) belongs to $(owner_of .)"
  case $(ls -ld . 2>/dev/null) in
    ?????w* | ????????w*) refuse "others may write into $(pwd): if all that is in it is yours, chmod go-w it" ;;
  esac
}

# In the directories above, others may write only if the sticky bit stops them from renaming what is not theirs.
look_above() {
  set --
  for up in "$(pwd)" "$(pwd -P)"; do
    while [ "${up%/*}" != '' ]; do up=${up%/*} && set -- "$@" "$up/."; done
  done
  # shellcheck disable=SC2012 # modes are what is asked for
  loose=$(ls -ld / "$@" 2>/dev/null | LC_ALL=C awk '/^d.......w[^tT]/ { print $NF; exit }')
  [ -z "$loose" ] || refuse "everybody may rename what is in ${loose%/.}, which has no sticky bit"
}
