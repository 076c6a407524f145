import { expect } from 'chai'
import type { TaskSpec } from '../../../lib/task/driver.js'
import { readTaskInput, sameValue, type TaskOrder } from '../../../lib/task/task-spec.js'

const spec: TaskSpec = { allocId: 'a', taskName: 't', command: ['/bin/true', '-v'], isolation: 'none', env: { A: '1' } }

describe('reading a task to run', () => {
  it('gives back what is right as it is', () => {
    const full: TaskSpec = { ...spec, cwd: '/', stopGraceMs: 0, restart: { mode: 'always' } }
    expect(readTaskInput(full)).to.equal(full)
    const order: TaskOrder = { order: 'stop', allocId: 'a', taskName: 't' }
    expect(readTaskInput(order)).to.equal(order)
  })

  const wrong: [name: string, given: object, words: string][] = [
    ['no alloc', { ...spec, allocId: '' }, 'allocId is ""'],
    ['no name', { ...spec, taskName: undefined }, 'taskName is undefined'],
    ['a name with NUL', { ...spec, taskName: 'a\0b' }, 'taskName is'],
    ['no command', { ...spec, command: [] }, 'command is a list; it must be a list of the program'],
    ['a command line', { ...spec, command: 'sleep 5' }, 'command is "sleep 5"'],
    ['an empty program', { ...spec, command: [''] }, 'command[0] is ""'],
    ['an argument that is a number', { ...spec, command: ['sleep', 5] }, 'command[1] is "number"'],
    ['an argument with NUL', { ...spec, command: ['sleep', 'secret\0'] }, 'command[1] is'],
    ['an empty directory', { ...spec, cwd: '' }, 'cwd is ""'],
    ['another isolation', { ...spec, isolation: 'vm' }, 'isolation is "vm"; it must be none or image'],
    ['a list of variables', { ...spec, env: ['A=1'] }, 'env is a list'],
    ['a variable with =', { ...spec, env: { 'A=B': '1' } }, 'env is "A=B"'],
    ['a variable that is a number', { ...spec, env: { A: 1 } }, 'env.A is "number"'],
    ['a variable with NUL', { ...spec, env: { A: 'secret\0' } }, 'env.A is "string"'],
    ['no grace', { ...spec, stopGraceMs: -1 }, 'stopGraceMs is -1'],
    ['too long a grace', { ...spec, stopGraceMs: 2 ** 31 }, 'stopGraceMs is 2147483648'],
    ['a wrong policy', { ...spec, restart: { attempts: 0 } }, 'restart.attempts is 0'],
    ['another order', { order: 'kill', allocId: 'a', taskName: 't' }, 'order is "kill"; it must be one of stop'],
    ['an order to nobody', { order: 'stop', allocId: 'a' }, 'taskName is undefined'],
  ]
  for (const [name, given, words] of wrong) {
    it(`refuses ${name}`, () => {
      expect(() => readTaskInput(given as TaskSpec))
        .to.throw(words)
        .with.property('code', 'ERR_OPTION_INVALID')
      expect(() => readTaskInput(given as TaskSpec)).to.not.throw('secret')
    })
  }

  it('refuses what is no object', () => {
    expect(() => readTaskInput(null as unknown as TaskSpec)).to.throw('task is null')
  })
})

describe('whether two tasks are the same', () => {
  it('does not depend on the order of fields, nor on a field left out or undefined', () => {
    const { env, ...rest } = spec
    expect(sameValue(spec, { env, ...rest })).to.be.true
    expect(sameValue(spec, { ...structuredClone(spec), cwd: undefined })).to.be.true
  })

  const others: object[] = [
    { ...spec, command: ['/bin/true'] },
    { ...spec, command: ['-v', '/bin/true'] },
    { ...spec, command: { 0: '/bin/true', 1: '-v' } },
    { ...spec, env: { A: '1', B: '2' } },
    { ...spec, env: undefined },
    { ...spec, cwd: '/' },
    { ...spec, csiPlugin: { id: 'x', type: 'node' } },
  ]
  for (const other of others) {
    it(`sees a difference in ${JSON.stringify(other)}`, () => {
      expect(sameValue(spec, other)).to.be.false
      expect(sameValue(other, spec)).to.be.false
    })
  }
})
