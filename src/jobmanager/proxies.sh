# Gryphus: the proxies of the jobs here, proxies/NAME/x509up. Part of jobmanager.sh; delegate.sh makes the key.

# Body: a word NAME. `data NAME BYTES`: the certificate request of a key that stays here. Status 69: no openssl here.
do_csr() {
  name=$(body "$1")
  is_key "$name" || return 64
  mkdir -p "proxies/$name" || return 74
  gryphus_delegate_request "proxies/$name" >|"$T/csr" || return
  crash_point jm.csr-made
  say "data $name $(wc -c <"$T/csr" | tr -d ' ')"
  cat "$T/csr"
  say
}

# Body 1: a word NAME. Body 2: the signed proxy and its issuers. Status 65: it is not for the key here, ask anew.
do_proxy() {
  name=$(body "$1")
  if is_key "$name" && [ -d "proxies/$name" ]; then
    body "$2" | (
      gryphus_delegate_install "proxies/$name"
      status=$?
      cat >/dev/null
      exit "$status"
    ) || return
    crash_point jm.proxy-in-place
  else
    body "$2" >/dev/null
    return 65
  fi
}

# No proxy stays where no job is that uses it.
sweep_proxies() {
  [ -d proxies ] || return 0
  # shellcheck disable=SC2044 # names have no blanks
  for dir in $(find proxies -type d -name '?*' -mmin +120 ! -name proxies 2>/dev/null); do
    [ -z "$(find jobs -name spec -exec grep -lx "proxy ${dir#proxies/}" {} + 2>/dev/null)" ] && rm -rf "$dir"
  done
}
