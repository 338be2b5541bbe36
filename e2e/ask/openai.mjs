// The package openai: chat completions and responses.

import OpenAI from 'openai';

const client = ({ base, key, retries, headers }) =>
  new OpenAI({ baseURL: base, apiKey: key, maxRetries: retries, defaultHeaders: headers });

const failure = (err) =>
  err instanceof OpenAI.APIError && { status: err.status ?? 0, code: err.code ?? '', message: err.message, kind: err.constructor.name };

const chatAnswer = (completion) => {
  const [choice] = completion.choices;
  const calls = choice.message.tool_calls ?? [];
  return {
    text: choice.message.content ?? '',
    tools: calls.map((call) => call.function.name),
    args: calls.map((call) => call.function.arguments).join(''),
    finish: choice.finish_reason,
    input: completion.usage?.prompt_tokens,
    output: completion.usage?.completion_tokens,
    stoplog: completion.stoplog,
  };
};

async function chat(question, pieces) {
  const { model, text, tool, schema, stream } = question;
  const completions = client(question).chat.completions;
  const params = { model, messages: [{ role: 'user', content: text }] };
  if (tool) params.tools = [{ type: 'function', function: { name: tool.name, parameters: tool.schema } }];
  if (schema) params.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } };
  if (!stream) return chatAnswer(await completions.create(params));

  const events = completions.stream({ ...params, stream_options: { include_usage: true } });
  events.on('content', (delta) => pieces.add(delta));
  events.on('chunk', (chunk) => (pieces.policy = chunk.stoplog ?? pieces.policy));
  return pieces.finish(chatAnswer(await events.finalChatCompletion()));
}

const responseAnswer = (response) => {
  const calls = response.output.filter((item) => item.type === 'function_call');
  return {
    text: response.output_text,
    reasoning: response.output
      .filter((item) => item.type === 'reasoning')
      .flatMap((item) => item.summary.map((part) => part.text))
      .join(''),
    tools: calls.map((item) => item.name),
    args: calls.map((item) => item.arguments).join(''),
    finish: response.incomplete_details?.reason ?? response.status,
    input: response.usage?.input_tokens,
    output: response.usage?.output_tokens,
    stoplog: response.stoplog,
  };
};

async function responses(question, pieces) {
  const { model, text, tool, schema, stream } = question;
  const { responses } = client(question);
  const params = { model, input: text };
  if (tool) params.tools = [{ type: 'function', name: tool.name, parameters: tool.schema, strict: true }];
  if (schema) params.text = { format: { type: 'json_schema', name: 'answer', schema, strict: true } };
  if (!stream) return responseAnswer(await responses.create(params));

  const events = responses.stream(params);
  events.on('response.output_text.delta', (event) => pieces.add(event.delta));
  const response = await events.finalResponse();
  pieces.policy = response.stoplog;
  return pieces.finish(responseAnswer(response));
}

export const clients = { openai: { ask: chat, failure }, responses: { ask: responses, failure } };
