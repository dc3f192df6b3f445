// Writes the DAG files of well-known workflows: node generate.mjs <shape> [size] > shape.dag
// Shapes after Bharathi et al., "Characterization of Scientific Workflows", WORKS 2008, and CRAB's production DAGs.

const out = [];
const categories = new Set();
const job = (name, category) => {
  out.push(`JOB ${name} job.sub`);
  if (category !== undefined) {
    out.push(`CATEGORY ${name} ${category}`);
    categories.add(category);
  }
  return name;
};
const edge = (parents, children) => {
  if (parents.length > 0 && children.length > 0) out.push(`PARENT ${parents.join(' ')} CHILD ${children.join(' ')}`);
};
const many = (prefix, count, category) => Array.from({ length: count }, (_, i) => job(`${prefix}_${i}`, category));

const SHAPES = {
  /** Mosaics of the sky: project each image, fit each overlap, correct each background, add. */
  montage(size) {
    const project = many('mProject', size, 'project');
    const overlaps = project.slice(1).map((_, i) => [i, i + 1]);
    if (size > 2) overlaps.push([0, size - 1]);
    const diff = overlaps.map(([a, b], i) => {
      const name = job(`mDiffFit_${i}`, 'diff');
      edge([project[a], project[b]], [name]);
      return name;
    });
    edge(diff, [job('mConcatFit')]);
    edge(['mConcatFit'], [job('mBgModel')]);
    const background = project.map((parent, i) => {
      const name = job(`mBackground_${i}`, 'background');
      edge(['mBgModel', parent], [name]);
      return name;
    });
    edge(background, [job('mImgtbl')]);
    for (const [before, after] of [
      ['mImgtbl', 'mAdd'],
      ['mAdd', 'mShrink'],
      ['mShrink', 'mJPEG'],
    ])
      edge([before], [job(after)]);
  },
  /** Earthquake hazards: two extractions, seismograms of each rupture, peaks, two archives. */
  cybershake(size) {
    const extract = many('ExtractSGT', 2, 'extract');
    const zip = [job('ZipSeis'), job('ZipPSA')];
    for (let i = 0; i < size; i++) {
      const synthesis = job(`SeismogramSynthesis_${i}`, 'synthesis');
      const peak = job(`PeakValCalc_${i}`, 'peak');
      edge([extract[i % 2]], [synthesis]);
      edge([synthesis], [peak, zip[0]]);
      edge([peak], [zip[1]]);
    }
  },
  /** Genome sequencing: the worker is split, each chunk goes through four steps, then all are merged. */
  epigenomics(size) {
    const split = job('fastqSplit');
    const merge = job('mapMerge');
    for (let i = 0; i < size; i++) {
      const steps = ['filterContams', 'sol2sanger', 'fastq2bfq', 'map'].map((step) => job(`${step}_${i}`, step));
      edge([split], [steps[0]]);
      for (let s = 1; s < steps.length; s++) edge([steps[s - 1]], [steps[s]]);
      edge([steps[3]], [merge]);
    }
    edge([merge], [job('maqIndex')]);
    edge(['maqIndex'], [job('pileup')]);
  },
  /** An experiment's analysis task: independent jobs with retries and throttles, and a final node that reports. */
  crab(size) {
    for (const name of many('Job', size, 'task'))
      out.push(`RETRY ${name} 2 UNLESS-EXIT 2`, `VARS ${name} count="${name.slice(4)}"`);
    out.push('FINAL report job.sub');
  },
};

const [, , shape, size] = process.argv;
if (!Object.hasOwn(SHAPES, shape ?? '')) {
  console.error(`Usage: node generate.mjs ${Object.keys(SHAPES).join('|')} [size]`);
  process.exit(2);
}
out.push(`# ${shape}: node generate.mjs ${shape} ${size ?? ''}`.trimEnd());
SHAPES[shape](Number(size ?? 4));
for (const category of categories) out.push(`MAXJOBS ${category} 50`);
console.log(out.join('\n'));
