// Asks questions with JavaScript clients: one question a line on stdin, its
// answer a line on stdout, both JSON as in answer_test.go. A client's error is an
// answer too; anything else that goes wrong is told as `broken`. It ends with its
// stdin.

import { createInterface } from 'node:readline';
import * as anthropic from './ask/anthropic.mjs';
import * as langchain from './ask/langchain.mjs';
import * as openai from './ask/openai.mjs';
import { Pieces } from './ask/pieces.mjs';
import * as vercel from './ask/vercel.mjs';

const clients = { ...openai.clients, ...anthropic.clients, ...vercel.clients, ...langchain.clients };

async function answer(question) {
  const client = clients[question.sdk];
  const pieces = new Pieces();
  try {
    return await client.ask(question, pieces);
  } catch (err) {
    const error = client.failure(err);
    if (!error) return { broken: err.stack };
    return { text: pieces.text, deltas: pieces.deltas, stoplog: pieces.policy, error };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line))));
}
