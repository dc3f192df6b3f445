import { describe, expect, it } from 'vitest';
import { isSettable } from '../../src/gridmanager/chirp/settable.ts';

describe('the attributes that a running job sets of itself', () => {
  it('are its own words, its policy, and what it needs', () => {
    for (const name of ['Progress', 'ChirpStep', 'OnExitRemove', 'PeriodicHold', 'RequestMemory', 'JobPrio', 'Rank'])
      expect(isSettable(name), name).toBe(true);
  });

  // Each of these would let the machine that runs it place, read or run files at home, or act as another.
  for (const name of `OutputDirectory CommonInputFiles PublicInputFiles JarFiles ContainerImage ContainerImageSource DockerImage
      TransferExecutable ShouldTransferFiles TransferCheckpoint BatchExtraSubmitArgs GlobusRSL AcctGroup AcctGroupUser
      AccountingGroup OAuthServicesNeeded MyProxyHost UserLog Iwd outputdirectory TransferOutputRemaps Owner
      GryphusSite TransformBody_RequestMemory WantGlidein WantDocker`.split(/\s+/))
    it(`${name} is not one of them`, () => expect(isSettable(name)).toBe(false));
});
