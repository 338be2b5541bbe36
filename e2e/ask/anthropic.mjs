// The package @anthropic-ai/sdk: messages.

import Anthropic from '@anthropic-ai/sdk';

const asAnswer = (message) => {
  const calls = message.content.filter((block) => block.type.endsWith('tool_use'));
  return {
    text: message.content.map((block) => block.text ?? '').join(''),
    reasoning: message.content.map((block) => block.thinking ?? '').join(''),
    tools: calls.map((block) => block.name),
    args: calls.map((block) => JSON.stringify(block.input)).join(''),
    finish: message.stop_reason,
    input: message.usage.input_tokens,
    output: message.usage.output_tokens,
    stoplog: message.stoplog,
  };
};

async function ask({ base, key, model, text, tool, schema, stream, retries, headers, max_tokens = 1024 }, pieces) {
  const { messages } = new Anthropic({ baseURL: base, apiKey: key, maxRetries: retries, defaultHeaders: headers });
  const params = { model, max_tokens, messages: [{ role: 'user', content: [{ type: 'text', text }] }] };
  if (tool) params.tools = [{ name: tool.name, input_schema: tool.schema }];
  if (schema) params.output_config = { format: { type: 'json_schema', schema } };
  if (!stream) return asAnswer(await messages.create(params));

  const events = messages.stream(params);
  events.on('text', (delta) => pieces.add(delta));
  events.on('streamEvent', (event) => (pieces.policy = event.stoplog ?? pieces.policy));
  return pieces.finish(asAnswer(await events.finalMessage()));
}

const failure = (err) =>
  err instanceof Anthropic.APIError && {
    status: err.status ?? 0,
    code: err.error?.error?.type ?? '',
    message: err.message,
    kind: err.constructor.name,
  };

export const clients = { anthropic: { ask, failure } };
