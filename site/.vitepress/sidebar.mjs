/** The site's table of contents: every page of docs/ has one place in it (test/documentation-site.test.ts). */
export const SIDEBAR = [
  {
    text: 'In five minutes',
    items: [
      { text: 'Overview', link: '/README' },
      { text: 'For Slurm users', link: '/docs/five-minutes/slurm' },
      { text: 'For HTCondor users', link: '/docs/five-minutes/htcondor' },
      { text: 'For GNU parallel users', link: '/docs/five-minutes/parallel' },
      { text: 'I have two clusters', link: '/docs/five-minutes/two-clusters' },
      { text: 'Example: a sweep', link: '/examples/pi/README' },
    ],
  },
  {
    text: 'Using Gryphus',
    items: [
      { text: 'Commands', link: '/docs/cli/README' },
      { text: 'Configuration', link: '/docs/configuration' },
      { text: 'The live page', link: '/docs/web' },
      { text: 'Error messages', link: '/docs/error-messages' },
      { text: 'Comparison with other tools', link: '/docs/comparison' },
      { text: 'What changed', link: '/CHANGELOG' },
    ],
  },
  {
    text: 'Jobs',
    items: [
      { text: 'Submit commands', link: '/docs/submit-commands' },
      { text: 'Batch scripts', link: '/docs/batch-scripts' },
      { text: 'Parallel jobs', link: '/docs/parallel' },
      { text: 'DAGs', link: '/docs/dag' },
      { text: 'Checkpoints', link: '/docs/checkpoints' },
      { text: 'Chirp', link: '/docs/chirp' },
      { text: 'URLs as inputs and outputs', link: '/docs/urls' },
      { text: 'ClassAds', link: '/docs/classad' },
      { text: 'Differences from HTCondor', link: '/docs/compatibility' },
    ],
  },
  {
    text: 'Where jobs run',
    items: [
      { text: 'The pool', link: '/docs/pool' },
      { text: "The machine's owner", link: '/docs/owner' },
      { text: 'User priorities', link: '/docs/priorities' },
      { text: 'Glideins', link: '/docs/glideins' },
      { text: 'A flock of pools', link: '/docs/flock' },
      { text: 'The broker', link: '/docs/broker' },
      { text: 'GRAM, GSI, GridFTP', link: '/docs/grid' },
      { text: "Condor-G's figure 1", link: '/docs/condor-g-figure-1' },
      { text: 'Gryphus to Gryphus', link: '/docs/gryphus-to-gryphus' },
      { text: 'Credentials', link: '/docs/credentials' },
      { text: 'Backups, a lost machine', link: '/docs/recovery' },
    ],
  },
  {
    text: 'Programs',
    items: [
      { text: 'The library', link: '/docs/library' },
      { text: 'API reference', link: '/docs/api/' },
      { text: 'Python', link: '/docs/python' },
      { text: 'JSON of the commands', link: '/docs/json' },
      { text: 'Protocol', link: '/docs/protocol' },
    ],
  },
  {
    text: 'Inside',
    items: [
      { text: 'Architecture', link: '/docs/ARCHITECTURE' },
      { text: 'Decisions', link: '/docs/decisions' },
      { text: 'Life of a job', link: '/docs/life-of-a-job' },
      { text: 'Life of a machine', link: '/docs/life-of-a-machine' },
      { text: 'Add a backend', link: '/docs/add-a-backend' },
      { text: 'Benchmarks', link: '/docs/benchmarks' },
      { text: 'Contributing', link: '/CONTRIBUTING' },
      { text: 'Security', link: '/SECURITY' },
    ],
  },
];
