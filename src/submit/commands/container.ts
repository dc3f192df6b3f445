import type { Step } from '../maker.ts';
import { tokens } from '../text.ts';

/** The network services of a container, each with its port. */
export const containerServices: Step = {
  name: 'container_service_names',
  run(job) {
    if (!job.kind.docker && !job.kind.container) return;
    const list = job.param('container_service_names', 'ContainerServiceNames');
    if (list === undefined) return;
    job.setString('ContainerServiceNames', list);
    for (const service of tokens(list)) {
      const port = job.intParam(`${service}_container_port`, undefined, 'int32') ?? -1n;
      if (port < 0n || port > 65_535n) {
        throw job.fault(
          'container_service_names',
          `Requested container service '${service}' was not assigned a port, or the assigned port was not valid.`,
          [`Add a line ${service}_container_port = PORT.`],
        );
      }
      job.setInt(`${service}_ContainerPort`, port);
    }
  },
};
