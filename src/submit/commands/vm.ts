import { sizeOf } from '../calculate.ts';
import type { JobMaker, Step } from '../maker.ts';
import { tokens } from '../text.ts';
import { UNIVERSE } from '../../job/universe.ts';

function setFlag(job: JobMaker, command: string, attribute: string): boolean {
  const written = job.boolParam(command, attribute);
  const value = written ?? job.draft.bool(attribute) ?? false;
  if (written !== undefined || !job.draft.has(attribute)) job.setBool(attribute, value);
  return value;
}

function setMemory(job: JobMaker): void {
  const written = job.param('vm_memory', 'JobVMMemory');
  if (written === undefined) {
    if (job.draft.has('JobVMMemory')) return;
    throw job.fault('universe', 'vm_memory cannot be found. Please specify vm_memory for vm universe.');
  }
  const size = sizeOf(written, 2 ** 20)?.value ?? 0;
  if (size <= 0) {
    throw job.fault('vm_memory', 'vm_memory is incorrectly specified', ['For 128 megabytes write vm_memory = 128.']);
  }
  job.setInt('JobVMMemory', size);
  job.setInt('ExecutableSize', size * 1024);
}

function setXen(job: JobMaker): void {
  const written = job.param('xen_kernel', 'VMPARAM_Xen_Kernel');
  if (written !== undefined) job.setString('VMPARAM_Xen_Kernel', written);
  const kernel = written ?? job.draft.string('VMPARAM_Xen_Kernel');
  if (kernel === undefined) {
    throw job.fault(
      'vm_type',
      "'xen_kernel' cannot be found. Please specify 'xen_kernel' for the xen virtual machine.",
      ['xen_kernel must be one of "included", "vmx", <file-name>.'],
    );
  }
  if (kernel.toLowerCase() === 'vmx') job.setBool('JobVMHardwareVT', true);
  const isFile = !['included', 'vmx'].includes(kernel.toLowerCase());
  const initrd = job.param('xen_initrd');
  if (initrd !== undefined) {
    if (!isFile) throw job.fault('xen_initrd', 'To use xen_initrd, xen_kernel should be a real kernel file.');
    job.setString('VMPARAM_Xen_Initrd', initrd);
  }
  if (isFile) {
    const root = job.param('xen_root');
    if (root === undefined) throw job.fault('xen_kernel', "'xen_root' cannot be found. Please specify 'xen_root'.");
    job.setString('VMPARAM_Xen_Root', root);
  }
  const parameters = job.param('xen_kernel_params', 'VMPARAM_Xen_Kernel_Params');
  if (parameters !== undefined) job.setString('VMPARAM_Xen_Kernel_Params', parameters.replace(/^(["'])(.*)\1$/s, '$2'));
}

function setDisk(job: JobMaker): void {
  const disk = job.param('vm_disk');
  if (disk === undefined) {
    if (job.draft.has('VMPARAM_vm_Disk')) return;
    throw job.fault('vm_type', "'<vm>_disk' cannot be found. Please specify '<vm>_disk' for the virtual machine.");
  }
  const parts = tokens(disk, ',').map((one) => one.split(':').length);
  if (parts.length === 0 || parts.some((count) => count < 3 || count > 4)) {
    throw job.fault('vm_disk', "'vm_disk' has incorrect format.", ['Write "<filename>:<devicename>:<permission>".']);
  }
  job.setString('VMPARAM_vm_Disk', disk);
}

/** The virtual machine universe: accepted as by HTCondor, although no site here runs it. */
export const vm: Step = {
  name: 'vm',
  run(job) {
    if (job.kind.universe !== UNIVERSE.vm) return;
    const type = job.param('vm_type', 'JobVMType')?.toLowerCase();
    if (type !== undefined) job.setString('JobVMType', type);
    setFlag(job, 'vm_checkpoint', 'JobVMCheckpoint');
    if (setFlag(job, 'vm_networking', 'JobVMNetworking')) {
      const networking = job.param('vm_networking_type', 'JobVMNetworkingType');
      if (networking !== undefined) job.setString('JobVMNetworkingType', networking);
    }
    setFlag(job, 'vm_vnc', 'JobVMVNCConsole');
    setMemory(job);
    const cpus = job.param('vm_vcpus', 'JobVM_VCPUS');
    if (cpus !== undefined) job.setInt('JobVM_VCPUS', Math.max(Number.parseInt(cpus, 10) || 0, 1));
    else if (!job.draft.has('JobVM_VCPUS')) job.setInt('JobVM_VCPUS', 1);
    const address = job.param('vm_macaddr', 'JobVM_MACADDR');
    if (address !== undefined) job.setString('JobVM_MACADDR', address);
    const keeps = job.boolParam('vm_no_output_vm');
    if (keeps !== undefined) job.setBool('VMPARAM_No_Output_VM', keeps);
    if (type === 'xen') setXen(job);
    if (type === 'xen' || type === 'kvm') setDisk(job);
    if (type === 'vmware') throw job.fault('vm_type', "A vm_type of 'vmware' is no longer supported");
  },
};
