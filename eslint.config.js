import tseslint from 'typescript-eslint'

const noDefaultExport = {
  selector: 'ExportDefaultDeclaration',
  message: 'Export by name: a thing has one name everywhere.',
}

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'lib/csi/generated/', 'test/packaging/consumers/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-restricted-syntax': ['error', noDefaultExport],
      'no-console': 'error',
      eqeqeq: 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],

      // Numbers and booleans read the same in a template as anywhere else.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // `() => close()` and `return close()` say all there is to say where nothing is answered.
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // What was caught is passed on as it is.
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true, allowThrowingAny: false }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      // `async () => void (await close())` says that the answer is dropped.
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      // An implementation of a port is async so that what it throws is a rejection, awaiting or not.
      '@typescript-eslint/require-await': 'off',
      // `client<T>(…)` and `dispense<T>(…)` are the contract: only the caller knows what its dispenser makes.
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    // Programs write to the console; the library does not.
    files: ['examples/**', 'streams/main.ts', 'test/bench/**', 'test/**/programs/**'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**'],
    rules: {
      // chai: `expect(x).to.be.true`.
      '@typescript-eslint/no-unused-expressions': 'off',
      // A test that asserts on what is not there fails, which is what it is for.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // A suite takes `describe` and `it` out of the runner it is given.
      '@typescript-eslint/unbound-method': 'off',
      // Stand-ins do nothing on purpose.
      '@typescript-eslint/no-empty-function': 'off',
    },
  },
)
