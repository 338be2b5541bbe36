// Asks a question with an official JavaScript client and prints the answer as
// JSON, both as in answer_test.go. A client's error is an answer too; anything
// else that goes wrong ends the process with a stack trace.

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const question = JSON.parse(process.argv[2]);
const maxRetries = Number(process.argv[3]);

// Gathers what a stream hands out piece by piece.
class Pieces {
  text = '';
  deltas = 0;
  policy = undefined;

  add(text) {
    if (!text) return;
    this.text += text;
    this.deltas++;
  }

  // The answer that the client's own accumulator made of the pieces.
  finish(answer) {
    if (answer.text !== this.text) {
      throw new Error(`accumulated ${JSON.stringify(answer.text)} of ${JSON.stringify(this.text)}`);
    }
    return { ...answer, deltas: this.deltas, stoplog: this.policy };
  }
}

const asOpenAI = (completion) => {
  const [choice] = completion.choices;
  return {
    text: choice.message.content ?? '',
    args: (choice.message.tool_calls ?? []).map((call) => call.function.arguments).join(''),
    finish: choice.finish_reason,
    input: completion.usage?.prompt_tokens,
    output: completion.usage?.completion_tokens,
    stoplog: completion.stoplog,
  };
};

async function openai({ base, key, model, text, stream }, pieces) {
  const client = new OpenAI({ baseURL: base, apiKey: key, maxRetries });
  const params = { model, messages: [{ role: 'user', content: text }] };
  if (!stream) return asOpenAI(await client.chat.completions.create(params));

  const events = client.chat.completions.stream({ ...params, stream_options: { include_usage: true } });
  events.on('content', (delta) => pieces.add(delta));
  events.on('chunk', (chunk) => (pieces.policy = chunk.stoplog ?? pieces.policy));
  return pieces.finish(asOpenAI(await events.finalChatCompletion()));
}

const asResponse = (response) => ({
  text: response.output_text,
  args: response.output
    .filter((item) => item.type === 'function_call')
    .map((item) => item.arguments)
    .join(''),
  finish: response.incomplete_details?.reason ?? response.status,
  input: response.usage?.input_tokens,
  output: response.usage?.output_tokens,
  stoplog: response.stoplog,
});

async function responses({ base, key, model, text, stream }, pieces) {
  const client = new OpenAI({ baseURL: base, apiKey: key, maxRetries });
  const params = { model, input: text };
  if (!stream) return asResponse(await client.responses.create(params));

  const events = client.responses.stream(params);
  events.on('response.output_text.delta', (event) => pieces.add(event.delta));
  const response = await events.finalResponse();
  pieces.policy = response.stoplog;
  return pieces.finish(asResponse(response));
}

const asAnthropic = (message) => ({
  text: message.content.map((block) => block.text ?? '').join(''),
  args: message.content
    .filter((block) => block.type.endsWith('tool_use'))
    .map((block) => JSON.stringify(block.input))
    .join(''),
  finish: message.stop_reason,
  input: message.usage.input_tokens,
  output: message.usage.output_tokens,
  stoplog: message.stoplog,
});

async function anthropic({ base, key, model, text, stream }, pieces) {
  const client = new Anthropic({ baseURL: base, apiKey: key, maxRetries });
  const params = { model, max_tokens: 1024, messages: [{ role: 'user', content: [{ type: 'text', text }] }] };
  if (!stream) return asAnthropic(await client.messages.create(params));

  const events = client.messages.stream(params);
  events.on('text', (delta) => pieces.add(delta));
  events.on('streamEvent', (event) => (pieces.policy = event.stoplog ?? pieces.policy));
  return pieces.finish(asAnthropic(await events.finalMessage()));
}

const clients = {
  openai: { ask: openai, APIError: OpenAI.APIError, code: (err) => err.code },
  responses: { ask: responses, APIError: OpenAI.APIError, code: (err) => err.code },
  anthropic: { ask: anthropic, APIError: Anthropic.APIError, code: (err) => err.error?.error?.type },
};
const client = clients[question.sdk];

const pieces = new Pieces();
let answer;
try {
  answer = await client.ask(question, pieces);
} catch (err) {
  if (!(err instanceof client.APIError)) throw err;
  answer = {
    text: pieces.text,
    deltas: pieces.deltas,
    stoplog: pieces.policy,
    error: { status: err.status ?? 0, code: client.code(err) ?? '', message: err.message },
  };
}
console.log(JSON.stringify(answer));
