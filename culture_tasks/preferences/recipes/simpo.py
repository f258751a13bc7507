"""SimPO with the CPO trainer of TRL, which has no command for it.

    accelerate launch simpo.py --config simpo.lora.yaml

The options are those of ``trl dpo``, with ``CPOConfig`` in place of ``DPOConfig``, on the command line or in the file.
The loss is SimPO's if ``loss_type`` is ``simpo`` and ``cpo_alpha`` is 0.0.
"""


def main() -> None:
    """Trains as the command line says, and saves the model."""
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import ModelConfig, ScriptArguments, TrlParser, get_peft_config, get_quantization_config
    from trl.experimental.cpo import CPOConfig, CPOTrainer

    script, training, model = TrlParser((ScriptArguments, CPOConfig, ModelConfig)).parse_args_and_config()
    checkpoint = {"revision": model.model_revision, "trust_remote_code": training.trust_remote_code}
    data = load_dataset(script.dataset_name, name=script.dataset_config)
    trainer = CPOTrainer(
        # Given a name, the trainer would spread the model over all GPUs, which doesn't go together with several ranks.
        model=AutoModelForCausalLM.from_pretrained(
            model.model_name_or_path,
            dtype=model.dtype,
            attn_implementation=model.attn_implementation,
            quantization_config=get_quantization_config(model),
            **checkpoint,
        ),
        args=training,
        train_dataset=data[script.dataset_train_split],
        eval_dataset=data[script.dataset_test_split] if training.eval_strategy != "no" else None,
        processing_class=AutoTokenizer.from_pretrained(model.model_name_or_path, **checkpoint),
        peft_config=get_peft_config(model),
    )
    trainer.train(resume_from_checkpoint=training.resume_from_checkpoint)
    trainer.save_model(training.output_dir)


if __name__ == "__main__":
    main()
