import { Button, CopyButton as Copy, type ButtonProps } from '@mantine/core'
import { Icon } from './icons'

/** Copies a text; for a moment it says that it did. */
export function CopyButton({ value, label, ...rest }: { value: string; label: string } & ButtonProps) {
  return (
    <Copy value={value}>
      {({ copied, copy }) => (
        <Button size="xs" variant="default" onClick={copy} leftSection={<Icon name={copied ? 'check' : 'copy'} size={14} />} {...rest}>
          {copied ? 'Copied' : label}
        </Button>
      )}
    </Copy>
  )
}
