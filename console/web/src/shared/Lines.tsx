import { Box } from '@mantine/core'
import { diffLines } from './diff'

const marks = { same: ' ', added: '+', removed: '−' }
const colours = { same: undefined, added: 'var(--mantine-color-green-light)', removed: 'var(--mantine-color-red-light)' }

/** The difference of two texts, line by line. */
export function Lines({ before, after }: { before: string; after: string }) {
  const lines = before === '' ? after.split('\n').map((text) => ({ kind: 'added' as const, text })) : diffLines(before, after)
  return (
    <Box component="pre" m={0} p="xs" bg="var(--panel)" fz="xs" style={{ overflow: 'auto', maxHeight: 420, borderRadius: 'var(--mantine-radius-sm)' }} tabIndex={0} aria-label="Difference, line by line" role="region">
      {lines.map((l, i) => (
        <div key={i} style={{ background: colours[l.kind] }} data-kind={l.kind}>
          {marks[l.kind]} {l.text}
        </div>
      ))}
    </Box>
  )
}
