/** The controllers that we use, by their cgroup v1 names. */
export const CONTROLLERS = ['memory', 'cpu', 'cpuacct', 'freezer'] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** A process's own cgroups, as directories: the v2 one, and those of v1 for the controllers that v1 has. */
export interface OwnGroups {
  readonly unified: string | undefined;
  readonly first: Readonly<Partial<Record<Controller, string>>>;
}

/** `self`: the text of /proc/PID/cgroup; `mounts`: that of /proc/self/mountinfo. */
export function ownGroups(self: string, mounts: string): OwnGroups {
  const mounted = mounts.split('\n').flatMap((line) => parsedMount(line) ?? []);
  const first: Partial<Record<Controller, string>> = {};
  let unified: string | undefined;
  for (const line of self.split('\n')) {
    const [, id = '', names = '', path = ''] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    if (id === '0' && names === '') unified = under(mounted, (one) => one.kind === 'cgroup2', path);
    for (const name of CONTROLLERS) {
      if (!names.split(',').includes(name)) continue;
      const dir = under(mounted, (one) => one.kind === 'cgroup' && one.options.includes(name), path);
      if (dir !== undefined) first[name] = dir;
    }
  }
  return { unified, first };
}

interface Mount {
  readonly kind: string;
  /** The part of the hierarchy that is mounted. */
  readonly root: string;
  readonly at: string;
  readonly options: readonly string[];
}

function parsedMount(line: string): Mount | undefined {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root, at] = before.split(' ');
  const [kind, , options = ''] = after.split(' ');
  if (root === undefined || at === undefined || kind === undefined) return undefined;
  return { kind, root: unescaped(root), at: unescaped(at), options: options.split(',') };
}

/** mountinfo escapes spaces, tabs, newlines and backslashes in octal. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

function under(mounts: readonly Mount[], is: (mount: Mount) => boolean, path: string): string | undefined {
  for (const mount of mounts) {
    if (!is(mount)) continue;
    const root = mount.root === '/' ? '' : mount.root;
    if (path !== root && !path.startsWith(`${root}/`)) continue;
    return `${mount.at}${path.slice(root.length)}`.replace(/\/$/, '');
  }
  return undefined;
}
