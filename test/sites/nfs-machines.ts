import { existsSync } from 'node:fs';
import { skipWithoutUml, underOwnKernel } from './uml.ts';

const MODULES = '/usr/lib/uml/modules';
const PARTS = ['/usr/sbin/rpc.nfsd', '/usr/sbin/mount.nfs4', '/usr/sbin/modprobe'];

/** What is missing for machines that share a directory by NFS; '' if nothing is. */
export function missingForNfs(): string {
  if (skipWithoutUml()) return 'root and linux.uml (Debian: user-mode-linux)';
  return [MODULES, ...PARTS].filter((part) => !existsSync(part)).join(', ');
}

/** How long the server keeps locks of a client that is silent, and waits for its clients after a start; seconds. */
const LEASE = 10;

/**
 * Linux's NFS server, and as many of its clients as there are `machines`, each with a name, a boot, processes and a network of its own,
 * and so with its own view of the files in /run/nfs and its own locks there.
 */
const SETUP = `
mkdir -p /run/kernel/lib; ln -s ${MODULES} /run/kernel/lib/modules
for module in nfsd nfs nfsv4 veth; do modprobe -d /run/kernel $module || echo "there is no $module"; done
mount -t tmpfs none /var/lib/nfs; mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld; : >/var/lib/nfs/etab; : >/var/lib/nfs/rmtab
mount -t rpc_pipefs none /var/lib/nfs/rpc_pipefs; mount -t nfsd none /proc/fs/nfsd
echo ${LEASE} >/proc/fs/nfsd/nfsv4leasetime; echo ${LEASE} >/proc/fs/nfsd/nfsv4gracetime
mkdir /run/export; mount -t tmpfs -o size=3G none /run/export
hostname server
nfsdcld; rpc.mountd -N 2 -N 3
exportfs -o rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0 '*:/run/export'
serve() { rpc.nfsd -N 3 -V 4 4; }
end_server() { rpc.nfsd 0; }
serve
# machine NAME NUMBER
machine() {
  echo "$2$2$2$2$2$2$2$2-0000-4000-8000-000000000000" >/run/$1.boot
  unshare --uts --net --mount --pid --fork --mount-proc sh -c "hostname $1; ip link set lo up
    mount --bind /run/$1.boot /proc/sys/kernel/random/boot_id; : >/run/$1.up; while :; do sleep 1; done" &
  until [ -e /run/$1.up ]; do sleep 0.1; done
  init=$(tr -d ' ' </proc/$!/task/$!/children)
  eval "$1=$init"
  ip link add $1 type veth peer name net netns $init; ip addr add 10.9.$2.1/24 dev $1; ip link set $1 up
  on $1 sh -c "ip addr add 10.9.$2.2/24 dev net; ip link set net up; mkdir -p /run/nfs; mount -t nfs4 -o vers=4.2,nosharecache 10.9.$2.1:/ /run/nfs" 2>/dev/null
  on $1 mountpoint /run/nfs
}
# on NAME COMMAND: runs it there.
on() { there=$1; shift; eval "init=\\$$there"; nsenter -t $init -m -u -n -p env HOME=/run "$@"; }
# cut NAME, join NAME: its network.
cut_off() { ip link set $1 down; }
join() { ip link set $1 up; }
`;

/** Runs a script for sh as root after the set-up, and resolves with all that was printed. */
export async function withNfs(script: string, timeoutMs: number): Promise<string> {
  const { text } = await underOwnKernel(['sh', '-c', `exec 2>&1; ${SETUP}${script}`], { cwd: '/run', timeoutMs });
  return text.replaceAll('\r', '');
}
