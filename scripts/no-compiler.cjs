// Stands for Fastify's compilers of JSON schemas in the page's server, none of whose routes has such a schema.
module.exports = () => () => {
  throw new Error('A route has a JSON schema, but the compilers of schemas are not in the bundle.');
};
