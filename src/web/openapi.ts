import * as z from 'zod';
import type { Route } from './route.ts';
import { ERROR } from './schemas.ts';

/** The OpenAPI document of these routes. */
export function openApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = `/api/v1${route.path.replaceAll(/:(\w+)/g, '{$1}')}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gryphus',
      version,
      description: 'What `gryphus web` serves to its page and `gryphus api` to programs: docs/protocol.md.',
    },
    security: [{ token: [] }],
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'The file web/token in the state directory; a unix socket needs none.',
        },
      },
    },
    paths,
  };
}

function operation({ path, summary, query, body, type, answer }: Route): object {
  const named = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const asked = query instanceof z.ZodObject ? Object.entries(query.shape) : [];
  const sought = asked.map(([name, schema]) => ({
    name,
    in: 'query',
    schema: jsonSchema(schema as z.ZodType, 'input'),
  }));
  return {
    summary,
    parameters: [...named, ...sought],
    ...(body ? { requestBody: { required: true, content: content(jsonSchema(body, 'input')) } } : {}),
    responses: {
      200: { description: 'The answer.', content: content(answer ? jsonSchema(answer, 'output') : {}, type) },
      default: { description: 'What was wrong.', content: content(jsonSchema(ERROR, 'output')) },
    },
  };
}

/** Of a stream of lines, the schema is that of each. */
function content(schema: object, type = 'application/json'): object {
  return { [type]: { schema } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}
