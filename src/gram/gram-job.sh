#!/bin/sh
# Gryphus: one attempt as a GRAM job. Its package, a tar archive, follows this script in the same file: the attempt's
# record, its content, wrapper.sh, and last `whole`. Its results leave on standard output, as a tar archive that is
# complete if its last file is `end`.
#   gram-job.sh KEY BYTES [SHARED]       BYTES: the length of this script; SHARED: the directory of shared content
# If our end of the connection dies, a job manager runs the part that it received. Nothing of that may start; the
# agent learns of it from the message on standard error. The exit status is 0 because some adapters otherwise drop
# the message.
trap 'echo "gryphus: the program did not arrive complete" >&2; exit 0' EXIT
main() {
  trap - EXIT
  set -u
  umask 077
  PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin
  export PATH
  KEY=$1
  case $0 in /*) PACKAGE=$0 ;; *) PACKAGE=$(pwd)/$0 ;; esac
  OFFSET=$(($2 + 1))
  SHARED=${3-}
  HOME=${HOME:-$(cd && pwd)}
  # Work next to the job's proxy, in the directory that the job manager removes after COMMIT_END.
  case ${X509_USER_PROXY-} in
    /*) DIR=${X509_USER_PROXY%/*}/gryphus ;;
    *)
      echo 'gryphus: the job manager did not give this job a proxy' >&2
      exit 0
      ;;
  esac

  # A second copy of this job, whatever its cause, finds the directory and leaves without running.
  mkdir "$DIR" || exit 217
  cd "$DIR" || exit 216
  trap : TERM HUP INT QUIT USR1 USR2 XCPU
  unpack() {
    tail -c "+$OFFSET" "$PACKAGE" | tar -xf - && [ -f whole ] && mkdir -p events cache || return 1
    while read -r bytes sha; do # copied so that no job sees what another writes into it
      cp "$SHARED/$sha" "cache/$sha" && [ "$(wc -c <"cache/$sha")" -eq "$bytes" ] && chmod 400 "cache/$sha" || return 1
    done <whole
  }
  unpack || {
    echo 'gryphus: the package is incomplete or could not be unpacked; is the disk of the site full?' >&2
    exit 0
  }
  chmod 700 wrapper.sh
  JOB=$DIR/jobs/$KEY

  # If the site has globus-url-copy, the program's output is sent home while it runs, to the URL that the job manager
  # keeps up to date.
  COPY=$(command -v globus-url-copy) || COPY=${GLOBUS_LOCATION:-/usr}/bin/globus-url-copy
  send_home() { # $1 file, $2 name at home
    url=
    IFS= read -r url <"$GLOBUS_REMOTE_IO_URL" || [ -n "$url" ] || return 1
    "$COPY" "file://$1" "${url%/}/$2" </dev/null >/dev/null 2>&1
  }
  stream() { # $1 stdout or stderr, $2 bytes already home; prints how many are home afterwards
    size=$(wc -c <"$JOB/$1" 2>/dev/null) || size=0
    size=$((size))
    if [ "$size" -gt "$2" ]; then
      tail -c "+$(($2 + 1))" "$JOB/$1" | head -c "$((size - $2))" >"live.$1"
      send_home "$DIR/live.$1" "live/$1/$2" || size=$2
    fi
    echo "$size"
  }
  follow() {
    out=0 err=0 told='' pause=1
    while sleep "$pause"; do
      [ -n "$told" ] || { [ -f "$JOB/run.lock.1/owner" ] && send_home "$JOB/run.lock.1/owner" live/owner && told=1; }
      before=$out.$err
      out=$(stream stdout "$out") err=$(stream stderr "$err")
      if [ "$before" != "$out.$err" ]; then pause=1; elif [ "$pause" -lt 15 ]; then pause=$((pause + 1)); fi
    done
  }
  FOLLOWER=
  if [ -x "$COPY" ] && [ -r "${GLOBUS_REMOTE_IO_URL-}" ]; then
    follow </dev/null >/dev/null 2>&1 &
    FOLLOWER=$!
  fi

  ./wrapper.sh "$DIR" "$KEY" 1 '' "${GLOBUS_GRAM_JOB_CONTACT:--}" </dev/null >/dev/null &
  WRAPPER=$!
  status=143
  while [ "$status" -gt 128 ] && kill -0 "$WRAPPER" 2>/dev/null; do # a signal ends the wait, not the wrapper
    wait "$WRAPPER"
    status=$?
  done
  [ -z "$FOLLOWER" ] || kill "$FOLLOWER" 2>/dev/null

  cd "$JOB" || exit 216
  : >end
  [ -e stdout ] || : >stdout
  [ -e stderr ] || : >stderr
  there=/
  [ -r names ] && there=$(cat names && echo .) && there=${there%.}
  set -- stdout stderr
  if [ -r outputs ]; then # the files that the job has to return
    while IFS= read -r line; do
      case $line in *\\*) line=$(printf '%b.' "$line") && line=${line%.} ;; esac
      [ -e "work/$line" ] && set -- "$@" "work/$line"
    done <outputs
  else # everything new; with `top`, without directories
    for file in work/* work/.[!.]* work/..?*; do
      [ -e "$file" ] || continue
      [ -f "$file" ] || [ ! -e top ] || continue
      case $there in *"/${file#work/}/"*) ;; *) set -- "$@" "$file" ;; esac
    done
  fi
  # Links are followed, as everywhere in the agent; backslashes in names are taken literally.
  PLAIN=
  tar --no-unquote -cf /dev/null end 2>/dev/null && PLAIN=--no-unquote
  tar ${PLAIN:+"$PLAIN"} -chf - "$@" exit end
  rm -rf "$DIR/cache" "$DIR/jobs/$KEY/work"
  exit 0
}
main "$@"
