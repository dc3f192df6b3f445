import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { ContainerSpec } from '../../site/contract.ts';

/** A program on this node that starts containers, as it was when tested. */
export interface Runtime {
  readonly kind: 'apptainer' | 'podman' | 'docker';
  /** An absolute path. */
  readonly program: string;
  readonly version: string;
  /** The flags for creating containers that it needs, or that work, here. */
  readonly flags: readonly string[];
  /** Additional flags for apptainer with images that are not directories; `undefined` if it cannot use those. */
  readonly fileFlags?: readonly string[];
  /** Why it cannot. */
  readonly whyNoFiles?: string | undefined;
}

/** The result of examining the node. */
export interface FoundRuntime {
  readonly runtimes: readonly Runtime[];
  /** Why other installed runtimes cannot be used, one sentence each. */
  readonly why: readonly string[];
}

type Kind = Runtime['kind'];

/** Which runtimes can run what, best first. */
const DOCKER: readonly Kind[] = ['docker', 'podman'];
const ANY: readonly Kind[] = ['apptainer', 'podman', 'docker'];
const FILES: readonly Kind[] = ['apptainer', 'podman'];

/** A worker's runtimes as machine attributes with HTCondor's names, and why others cannot be used. */
export function runtimeAd({ runtimes, why }: FoundRuntime): AttrTexts {
  const by = (kinds: readonly Kind[], isDirectory = false) => firstOf(kinds, runtimes, isDirectory);
  const docker = by(DOCKER);
  const apptainer = by(['apptainer'], true);
  const [first] = runtimes;
  return {
    // If it is not defined, the worker has not looked yet.
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

/** The runtime that starts this container here. `isDirectory`: whether its image is a directory here. */
export function runtimeFor(
  { image, docker }: ContainerSpec,
  { runtimes }: FoundRuntime,
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

/** Whether every runtime accepts the path in its mount options. */
export function mountable(path: string): boolean {
  return /^\/[^:,"\\\n]*$/.test(path);
}
