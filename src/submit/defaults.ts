import type { MachineFacts } from './options.ts';

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** The predefined macros (manual, "Automatic Variables"). `now` is in Unix seconds. */
export function defaultMacros(machine: MachineFacts, now: number, file: string | undefined): Map<string, string> {
  const date = new Date(now * 1000);
  return new Map([
    ['ARCH', machine.arch],
    ['OPSYS', machine.opsys],
    ['OPSYSVER', machine.opsysVer],
    ['OPSYSANDVER', machine.opsysAndVer],
    ['OPSYSMAJORVER', machine.opsysMajorVer],
    ['SPOOL', machine.spool],
    ['IsLinux', machine.opsys === 'LINUX' ? '1' : '0'],
    ['IsWindows', machine.opsys === 'WINDOWS' ? '1' : '0'],
    ['Cluster', '1'],
    ['ClusterId', '1'],
    ['Process', '0'],
    ['ProcId', '0'],
    ['Step', '0'],
    ['Row', '0'],
    ['ItemIndex', '0'],
    ['TaskId', '0'],
    ['Node', ''],
    ['JobId', '$(ClusterId).$(ProcId)'],
    ['JobListId', '$(ClusterId)'],
    ['Request_CPUs', '$(RequestCPUs)'],
    ['Request_Memory', '$(RequestMemory)'],
    ['VM_VCPUS', '$(Request_CPUs)'],
    ['VM_MEMORY', '$(Request_Memory)'],
    ['SUBMIT_FILE', file ?? ''],
    ['SUBMIT_TIME', String(now)],
    ['Year', String(date.getFullYear())],
    ['Month', two(date.getMonth() + 1)],
    ['Day', two(date.getDate())],
  ]);
}
