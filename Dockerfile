# The command line and its daemons in one image, for machines without Node. From a package that `npm pack` has made:
#
#     npm pack && podman build -t gryphus .
#     podman run -d --name gryphus -v gryphus:/home/node -v ~/.ssh:/home/node/.ssh:ro gryphus
#     podman exec -it gryphus gryphus q
#
# State, configuration and the pool are in the container: its own machine is the container itself.
ARG BASE=docker.io/library/node:22-bookworm-slim
FROM ${BASE}
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates openssh-client procps redis-server tini \
 && rm -rf /var/lib/apt/lists/*
COPY gryphus-*.tgz /tmp/gryphus.tgz
# ssh2's native part is optional, and there is no compiler.
RUN npm install -g --ignore-scripts --no-audit --no-fund /tmp/gryphus.tgz && rm -rf /tmp/gryphus.tgz /root/.npm
RUN id -u node >/dev/null 2>&1 || useradd -m -s /bin/bash node
USER node
WORKDIR /home/node
# tini reaps what the daemons leave, as the first process.
ENTRYPOINT ["tini", "-g", "--"]
CMD ["sh", "-c", "gryphus up && exec sleep infinity"]
