// The package ai with its providers @ai-sdk/openai (chat completions and
// responses) and @ai-sdk/anthropic. What it hands out is its own; of the member
// `stoplog` it tells nothing.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, generateText, jsonSchema, Output, RetryError, StreamProviderError, streamText, tool as asTool } from 'ai';
import { sameObject } from './pieces.mjs';

// finish is the provider's own word for how the answer ended; the responses API
// has none for one that ended well.
const asAnswer = async (result, finish) => {
  const calls = await result.toolCalls;
  const usage = await result.usage;
  return {
    text: await result.text,
    reasoning: (await result.reasoningText) ?? '',
    tools: calls.map((call) => call.toolName),
    args: calls.map((call) => JSON.stringify(call.input)).join(''),
    finish: (await result.rawFinishReason) ?? finish[await result.finishReason],
    input: usage.inputTokens,
    output: usage.outputTokens,
  };
};

const asking = (modelOf, finish = {}) =>
  async function ask(question, pieces) {
    const { text, tool, schema, stream, retries, headers } = question;
    const params = { model: modelOf(question), maxRetries: retries, headers, messages: [{ role: 'user', content: text }] };
    if (question.sdk === 'vercel-anthropic') params.maxOutputTokens = question.max_tokens;
    if (tool) params.tools = { [tool.name]: asTool({ inputSchema: jsonSchema(tool.schema) }) };
    if (schema) params.output = Output.object({ schema: jsonSchema(schema) });
    if (!stream) {
      const result = await generateText(params);
      if (schema) sameObject(result.output, result.text);
      return asAnswer(result, finish);
    }

    const result = streamText({ ...params, onError() {} }); // it is thrown below
    for await (const part of result.fullStream) {
      if (part.type === 'text-delta') pieces.add(part.text);
      if (part.type === 'error') throw part.error;
    }
    const answer = pieces.finish(await asAnswer(result, finish));
    if (schema) sameObject(await result.output, answer.text);
    return answer;
  };

const failing = (codeOf) => (err) => {
  if (StreamProviderError.isInstance(err)) return { status: 0, code: codeOf(err) ?? '', message: err.message };
  const last = RetryError.isInstance(err) ? err.lastError : err;
  return (
    APICallError.isInstance(last) && { status: last.statusCode ?? 0, code: codeOf(last.data?.error ?? {}) ?? '', message: last.message }
  );
};

const openai = ({ base, key }) => createOpenAI({ baseURL: base, apiKey: key });
const anthropic = ({ base, key }) => createAnthropic({ baseURL: base + '/v1', apiKey: key });
const openaiFailure = failing((error) => error.code);

export const clients = {
  'vercel-openai': { ask: asking((q) => openai(q).chat(q.model)), failure: openaiFailure },
  'vercel-responses': {
    ask: asking((q) => openai(q).responses(q.model), { stop: 'completed', 'tool-calls': 'completed' }),
    failure: openaiFailure,
  },
  'vercel-anthropic': { ask: asking((q) => anthropic(q)(q.model)), failure: failing((error) => error.type) },
};
