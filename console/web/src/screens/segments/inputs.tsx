import { Autocomplete, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './builder.module.css'

/** The controls within a sentence: as wide as what they hold. error is the id of the message that says what is wrong with one. */

// withAria would leave out a description that is not Mantine's own.
export const faulty = (error: string | undefined) => (error ? { error: true, withAria: false, 'aria-invalid': true, 'aria-describedby': error } : {})

export interface Choice<T extends string = string> {
  value: T
  label: string
}

export function Pick<T extends string>({ value, choices, onChange, label, error }: { value: T; choices: Choice<T>[]; onChange: (value: T) => void; label: string; error?: string }) {
  const all = choices.some((c) => c.value === value) ? choices : [...choices, { value, label: value || '…' }]
  return <NativeSelect size="xs" aria-label={label} data={all} value={value} onChange={(e) => onChange(e.currentTarget.value as T)} classNames={{ input: classes.pick }} {...faulty(error)} />
}

const wide = (value: string, least: number, most: number) => `${Math.max(least, Math.min(value.length + 2, most))}ch`

export interface Suggestion {
  value: string
  /** What is known of it, such as how often it is. */
  note?: string
}

/** A text with suggestions; any other text can be typed too. */
export function Suggest({ value, from, onChange, label, placeholder, error, least = 14 }: { value: string; from: Suggestion[]; onChange: (value: string) => void; label: string; placeholder?: string; error?: string; least?: number }) {
  const notes = new Map(from.map((s) => [s.value, s.note]))
  const matching = [...notes.keys()].filter((v) => v.toLowerCase().includes(value.toLowerCase().trim()))
  return (
    <Autocomplete
      size="xs"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onChange={onChange}
      data={matching.length === 1 && matching[0] === value ? [] : [...notes.keys()]}
      limit={50}
      maxDropdownHeight={280}
      {...faulty(error)}
      comboboxProps={{ width: 300, position: 'bottom-start', offset: 2 }}
      renderOption={({ option }: { option: { value: string } }) => (
        <Group justify="space-between" wrap="nowrap" gap="sm" w="100%">
          <Text size="xs" style={{ overflowWrap: 'anywhere' }}>
            {option.value}
          </Text>
          <Text size="xs" c="dimmed" style={{ flex: 'none' }}>
            {notes.get(option.value)}
          </Text>
        </Group>
      )}
      styles={{ root: { width: wide(value || placeholder || '', least, 34) }, input: { paddingInline: 8 } }}
      autoComplete="off"
      spellCheck={false}
    />
  )
}

export function Typed({ value, onChange, label, placeholder, error, numeric, type, least = 7 }: { value: string; onChange: (value: string) => void; label: string; placeholder?: string; error?: string; numeric?: boolean; type?: 'date'; least?: number }) {
  return (
    <TextInput
      size="xs"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      type={type}
      onChange={(e) => onChange(e.currentTarget.value)}
      {...faulty(error)}
      inputMode={numeric ? 'decimal' : undefined}
      styles={{ root: { width: type === 'date' ? 'auto' : wide(value || placeholder || '', least, 30) }, input: { paddingInline: 8, textAlign: numeric ? 'right' : undefined } }}
      autoComplete="off"
      spellCheck={false}
    />
  )
}

export const Word = ({ children }: { children: ReactNode }) => (
  <Text component="span" size="sm" className={classes.word}>
    {children}
  </Text>
)
