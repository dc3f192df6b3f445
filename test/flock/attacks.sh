# What the job of another pool may try. $1: the owner's home, $2: a process of the owner, $3: the name of the owner's things,
# $4: where sandboxes are. Says what it reached.
reached() { printf 'reached %s\n' "$*"; }
home=$1 pid=$2 name=$3 sandboxes=$4
ls "$home" 2>/dev/null | grep -q . && reached "the owner's home"
for dir in /tmp /var/tmp /dev/shm /run; do [ -e "$dir/$name" ] && reached "$dir"; done
[ -e "/proc/$pid" ] && reached "the owner's process in /proc"
grep -aq "$name" "/proc/$pid/environ" "/proc/$pid/cmdline" 2>/dev/null && reached "the owner's environment"
kill -0 "$pid" 2>/dev/null && reached 'the owner by a signal'
perl -MSocket -e 'socket(S, 1, 1, 0); exit !connect(S, pack_sockaddr_un("\0$ARGV[0]"))' "$name" 2>/dev/null &&
  reached 'an abstract socket, as of a display'
perl -MSocket -e 'socket(S, 1, 1, 0); exit !connect(S, pack_sockaddr_un("/run/$ARGV[0]"))' "$name" 2>/dev/null &&
  reached 'a socket of a service'
perl -e 'exit(syscall(101, 16, $ARGV[0] + 0, 0, 0) != 0)' "$pid" 2>/dev/null && reached 'the owner by ptrace'
perl -e 'my ($t, $n) = ("user", $ARGV[0]); exit(syscall(250, 10, -3, $t, $n, 0) <= 0)' "$name" 2>/dev/null &&
  reached 'a key in the keyring of the session'
perl -e 'my ($t, $n) = ("user", $ARGV[0]); exit(syscall(248, $t, $n, $n, length $n, -4) < 0)' "$name" 2>/dev/null &&
  reached 'a keyring that stays with its account'
ls -d "$sandboxes"/* 2>/dev/null | grep -v "/${GRYPHUS_KEY}\$" | grep -q . && reached 'the sandbox of another job'
ls / >/dev/null && ls /proc | grep -c '^[0-9]' | grep -qv '^[1-9]$' && reached 'many processes'
grep -q '^NoNewPrivs:[[:blank:]]*1$' /proc/self/status || reached 'new privileges'
grep -q '^Cap\(Inh\|Prm\|Eff\|Bnd\|Amb\):.*[1-9a-f]' /proc/self/status && reached 'capabilities'
su -c id root </dev/null 2>/dev/null | grep -q . && reached 'another account by a setuid program'
for dir in /tmp "$home"; do
  umount "$dir" 2>/dev/null && reached "what is below $dir"
  unshare -Urm sh -c "umount -l '$dir'; ls '$dir'" 2>/dev/null | grep -q "$name" && reached "what is below $dir, by a namespace"
done
nsenter -t 1 -m true 2>/dev/null && reached 'another namespace'
tail -n +3 /proc/net/dev | grep -qv '^ *lo:' && reached 'a network'
[ "$(sed -n 's/^Max processes *\([^ ]*\).*/\1/p' /proc/self/limits)" = 4096 ] || reached 'any number of processes'
[ "$(cat /proc/self/oom_score_adj)" = 1000 ] || reached 'memory before the owner'
touch ../stdout.new ../exit 2>/dev/null && reached "the worker's files"
for dir in /tmp /var/tmp /dev/shm; do echo left >"$dir/left-$name" || echo "cannot write to $dir"; done
cat /dev/stdin || echo 'cannot open its input again'
echo again >>/dev/stderr || echo 'cannot open its streams again'
id -u
