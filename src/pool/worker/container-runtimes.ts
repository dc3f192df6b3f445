import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { ContainerSpec } from '../../site/contract.ts';

/** A program on this node that starts containers, as it was seen to do it. */
export interface Runtime {
  readonly kind: 'apptainer' | 'podman' | 'docker';
  /** Absolute. */
  readonly program: string;
  readonly version: string;
  /** Flags of `create` that it needs here, or that it could be given here. */
  readonly flags: readonly string[];
  /** What apptainer is given besides with images that are no directories, if it can use such. */
  readonly fileFlags?: readonly string[];
  /** Why it cannot. */
  readonly whyNoFiles?: string | undefined;
}

/** What a look at the node found. */
export interface Found {
  readonly runtimes: readonly Runtime[];
  /** Why others that are installed cannot be used, a sentence each. */
  readonly why: readonly string[];
}

type Kind = Runtime['kind'];

/** Which can run what, the best first. */
const DOCKER: readonly Kind[] = ['docker', 'podman'];
const ANY: readonly Kind[] = ['apptainer', 'podman', 'docker'];
const FILES: readonly Kind[] = ['apptainer', 'podman'];

/** What a worker says of its runtimes, in HTCondor's words for machines; and why it has none. */
export function runtimeAd({ runtimes, why }: Found): AttrTexts {
  const by = (kinds: readonly Kind[], isDirectory = false) => firstOf(kinds, runtimes, isDirectory);
  const docker = by(DOCKER);
  const apptainer = by(['apptainer'], true);
  const [first] = runtimes;
  return {
    // Whoever says nothing has not looked yet.
    HasContainer: String(first !== undefined),
    ...(first && {
      ...(by(ANY) && { HasDockerURL: 'true' }),
      ContainerRuntime: quoted(runtimes.map(({ kind, version }) => `${kind} ${version}`).join(', ')),
    }),
    ...(docker && { HasDocker: 'true', DockerVersion: quoted(`${docker.kind} ${docker.version}`) }),
    ...(apptainer && { HasSingularity: 'true', SingularityVersion: quoted(apptainer.version) }),
    ...(by(['apptainer']) && { HasSIF: 'true' }),
    ...(by(FILES, true) && { HasSandboxImage: 'true' }),
    ...(why.length > 0 && { ContainerOfflineReason: quoted(why.join(' ')) }),
  };
}

/** Who starts this container here. `isDirectory`: its image, as it is here. */
export function runtimeFor(
  { image, docker }: ContainerSpec,
  { runtimes }: Found,
  isDirectory: boolean,
): Runtime | undefined {
  return firstOf(docker ? DOCKER : kindsFor(image), runtimes, isDirectory);
}

function firstOf(kinds: readonly Kind[], runtimes: readonly Runtime[], isDirectory = false): Runtime | undefined {
  const able = runtimes.filter(({ kind, fileFlags }) => kind !== 'apptainer' || isDirectory || fileFlags !== undefined);
  return kinds.flatMap((kind) => able.find((runtime) => runtime.kind === kind) ?? [])[0];
}

function kindsFor(image: ContainerSpec['image']): readonly Kind[] {
  if (image.kind === 'registry') return image.name.startsWith('docker:') ? ANY : ['apptainer'];
  const name = image.kind === 'file' ? image.name : image.path;
  return name.endsWith('.sif') ? ['apptainer'] : FILES;
}

/** Paths that every runtime takes in its lists of what is mounted. */
export function mountable(path: string): boolean {
  return /^\/[^:,"\\\n]*$/.test(path);
}
