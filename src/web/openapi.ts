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
      description: 'What `gryphus web` serves to its page and to programs: docs/web.md.',
    },
    security: [{ token: [] }],
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'The file web/token in the state directory.' },
      },
    },
    paths,
  };
}

function operation({ path, summary, query, body, answer }: Route): object {
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
    ...(body ? { requestBody: { required: true, content: json(jsonSchema(body, 'input')) } } : {}),
    responses: {
      200: { description: 'The answer.', content: json(jsonSchema(answer, 'output')) },
      default: { description: 'What was wrong.', content: json(jsonSchema(ERROR, 'output')) },
    },
  };
}

function json(schema: object): object {
  return { 'application/json': { schema } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}
