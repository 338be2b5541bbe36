// The package @langchain/openai: chat completions and responses. What it hands
// out is its own; of the member `stoplog` it tells nothing.

import { ChatOpenAI } from '@langchain/openai';
import { APIError } from 'openai';
import { sameObject } from './pieces.mjs';

const asAnswer = (message) => {
  const about = message.response_metadata;
  return {
    text: message.text,
    reasoning: message.contentBlocks
      .filter((block) => block.type === 'reasoning')
      .map((block) => block.reasoning)
      .join(''),
    tools: message.tool_calls.map((call) => call.name),
    args: message.tool_calls.map((call) => JSON.stringify(call.args)).join(''),
    finish: about.finish_reason ?? about.incomplete_details?.reason ?? about.status,
    input: message.usage_metadata?.input_tokens,
    output: message.usage_metadata?.output_tokens,
  };
};

const asking = (useResponsesApi) =>
  async function ask({ base, key, model, text, tool, schema, stream, retries, headers }, pieces) {
    const chat = new ChatOpenAI({
      model,
      apiKey: key,
      maxRetries: retries,
      useResponsesApi,
      configuration: { baseURL: base, defaultHeaders: headers },
    });
    if (schema && !stream) {
      const { raw, parsed } = await chat.withStructuredOutput(schema, { method: 'jsonSchema', includeRaw: true }).invoke(text);
      sameObject(parsed, raw.text);
      return asAnswer(raw);
    }
    let bound = chat;
    if (tool) bound = chat.bindTools([{ type: 'function', function: { name: tool.name, parameters: tool.schema } }]);
    if (schema) bound = chat.withConfig({ response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } });
    if (!stream) return asAnswer(await bound.invoke(text));

    let total;
    for await (const chunk of await bound.stream(text)) {
      pieces.add(chunk.text);
      total = total === undefined ? chunk : total.concat(chunk);
    }
    return pieces.finish(asAnswer(total));
  };

const failure = (err) => err instanceof APIError && { status: err.status ?? 0, code: err.code ?? '', message: err.message, kind: err.constructor.name };

export const clients = {
  'langchain-openai': { ask: asking(false), failure },
  'langchain-responses': { ask: asking(true), failure },
};
