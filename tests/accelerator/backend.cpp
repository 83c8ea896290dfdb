// A device without hardware, for tests. Its memory is the CPU's, and its operations are the CPU's, run on aliases of
// that memory; but an operation that is given tensors of the CPU as well, other than single numbers, is refused.

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include <string_view>
#include <unordered_map>

namespace {

const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

// The owner of memory, kept alive by a pointer to it under another device's name.
void release(void* owner) { delete static_cast<c10::Storage*>(owner); }

c10::Storage renamed(const c10::Storage& storage, c10::Device device) {
  auto* allocator = device.is_cpu() ? c10::GetCPUAllocator() : c10::GetAllocator(c10::DeviceType::PrivateUse1);
  c10::DataPtr data(storage.mutable_data(), new c10::Storage(storage), &release, device);
  return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), allocator, true);
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr memory = c10::GetCPUAllocator()->allocate(bytes);
    void* data = memory.get();
    auto deleter = memory.get_deleter();
    void* context = memory.release_context();
    return {data, context, deleter, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return c10::GetCPUAllocator()->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::Device getDeviceFromPtr(void*) const override { return kDevice; }
};

// The tensors and storages of one operation, under both names.
struct Aliases {
  std::unordered_map<c10::StorageImpl*, c10::Storage> on_cpu, on_device;
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors;  // of the device, of the CPU

  c10::Storage cpu(const c10::Storage& storage) {
    if (storage.device().is_cpu()) return storage;
    auto found = on_cpu.find(storage.unsafeGetStorageImpl());
    if (found != on_cpu.end()) return found->second;
    c10::Storage alias = renamed(storage, c10::Device(c10::kCPU));
    on_cpu.emplace(storage.unsafeGetStorageImpl(), alias);
    on_device.emplace(alias.unsafeGetStorageImpl(), storage);
    return alias;
  }

  c10::Storage device(const c10::Storage& storage) {
    if (!storage.device().is_cpu()) return storage;
    auto found = on_device.find(storage.unsafeGetStorageImpl());
    if (found != on_device.end()) return found->second;
    c10::Storage made = renamed(storage, kDevice);
    on_device.emplace(storage.unsafeGetStorageImpl(), made);
    return made;
  }

  at::Tensor cpu(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_cpu()) return tensor;
    for (auto& [known, alias] : tensors)
      if (known.is_same(tensor)) return alias;
    at::Tensor alias = moved(tensor, /*to_cpu=*/true);
    tensors.emplace_back(tensor, alias);
    return alias;
  }

  at::Tensor device(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    for (auto& [known, alias] : tensors)
      if (alias.is_same(tensor)) return known;
    return moved(tensor, /*to_cpu=*/false);
  }

  at::Tensor moved(const at::Tensor& tensor, bool to_cpu) {
    c10::Device target = to_cpu ? c10::Device(c10::kCPU) : kDevice;
    auto part = [&](const at::Tensor& x) { return to_cpu ? cpu(x) : device(x); };
    if (tensor.layout() == c10::kStrided) {
      at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
          to_cpu ? cpu(tensor.storage()) : device(tensor.storage()),
          c10::DispatchKeySet(to_cpu ? c10::DispatchKey::CPU : c10::DispatchKey::PrivateUse1), tensor.dtype());
      made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
      return made;
    }
    if (tensor.layout() == c10::kSparse) {
      auto* impl = static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
      auto key = to_cpu ? c10::DispatchKey::SparseCPU : c10::DispatchKey::SparsePrivateUse1;
      at::Tensor made = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), tensor.dtype());
      auto* other = static_cast<at::SparseTensorImpl*>(made.unsafeGetTensorImpl());
      other->raw_resize_(impl->sparse_dim(), impl->dense_dim(), tensor.sizes());
      other->set_indices_and_values_unsafe(part(impl->indices()), part(impl->values()));
      other->set_coalesced(impl->coalesced());
      return made;
    }
    auto options = at::TensorOptions().dtype(tensor.dtype()).layout(tensor.layout()).device(target);
    auto* impl = static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
    return at::_sparse_compressed_tensor_unsafe(part(impl->compressed_indices()), part(impl->plain_indices()),
                                                part(impl->values()), tensor.sizes(), options);
  }

  // What the operation did to shapes and memory of its arguments, beyond writing to them.
  void write_back() {
    const auto arguments = tensors;
    for (auto& [known, alias] : arguments) {
      auto* impl = known.unsafeGetTensorImpl();
      if (alias.layout() == c10::kSparse) {
        auto *mine = static_cast<at::SparseTensorImpl*>(impl);
        auto *other = static_cast<at::SparseTensorImpl*>(alias.unsafeGetTensorImpl());
        mine->raw_resize_(other->sparse_dim(), other->dense_dim(), alias.sizes());
        mine->set_indices_and_values_unsafe(device(other->indices()), device(other->values()));
        mine->set_coalesced(other->coalesced());
        continue;
      }
      if (alias.layout() != c10::kStrided) {
        auto* other = static_cast<at::SparseCsrTensorImpl*>(alias.unsafeGetTensorImpl());
        static_cast<at::SparseCsrTensorImpl*>(impl)->set_member_tensors(
            device(other->compressed_indices()), device(other->plain_indices()), device(other->values()),
            alias.sizes());
        continue;
      }
      c10::Storage before = known.storage(), after = alias.storage();
      auto found = on_cpu.find(before.unsafeGetStorageImpl());
      if (found->second.unsafeGetStorageImpl() != after.unsafeGetStorageImpl()) {
        impl->set_storage_keep_dtype(device(after));  // set_
      } else if (after.data() != before.data() || after.nbytes() != before.nbytes()) {  // resize_
        c10::DataPtr data(after.mutable_data(), new c10::Storage(after), &release, kDevice);
        before.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
        before.set_nbytes(after.nbytes());
      }
      if (alias.sizes() != known.sizes() || alias.strides() != known.strides() ||
          alias.storage_offset() != known.storage_offset())
        impl->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
    }
  }
};

bool is_device(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kDevice.type(); }

// What moves numbers between devices, and so has to take tensors of both; the first ones return their second argument.
bool is_dense_copy(std::string_view name) {
  return name == "aten::_copy_from" || name == "aten::_copy_from_and_resize";
}
bool is_copy(std::string_view name) {
  return is_dense_copy(name) || name == "aten::copy_" || name == "aten::copy_sparse_to_sparse_";
}

void refuse(std::string_view name, const at::Tensor& tensor) {
  if (!tensor.defined() || is_device(tensor) || tensor.dim() == 0) return;
  TORCH_CHECK(false, name, ": expected all tensors to be on the same device, but found one of shape ", tensor.sizes(),
              " on ", tensor.device(), " beside others on ", kDevice);
}

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::string_view name = schema.name();
  const size_t count = schema.arguments().size(), first = stack->size() - count;
  Aliases aliases;
  const bool mixed = is_copy(name);
  const at::Tensor target = mixed ? (*stack)[first + is_dense_copy(name)].toTensor() : at::Tensor();
  for (size_t k = first; k < stack->size(); ++k) {
    c10::IValue& value = (*stack)[k];
    if (value.isTensor()) {
      if (!mixed) refuse(name, value.toTensor());
      value = aliases.cpu(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        if (!mixed) refuse(name, tensor);
        list.push_back(aliases.cpu(tensor));
      }
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        if (!mixed && tensor) refuse(name, *tensor);
        list.push_back(tensor ? std::optional<at::Tensor>(aliases.cpu(*tensor)) : std::nullopt);
      }
      value = list;
    } else if (value.isStorage()) {
      value = aliases.cpu(value.toStorage());
    } else if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    }
  }
  if (mixed) {
    at::Tensor from = (*stack)[first + !is_dense_copy(name)].toTensor();
    at::Tensor to = (*stack)[first + is_dense_copy(name)].toTensor();
    if (name == "aten::_copy_from_and_resize") to.resize_(from.sizes());
    to.copy_(from);
    aliases.write_back();
    torch::jit::drop(*stack, count);
    torch::jit::push(*stack, target);
    return;
  }
  op.callBoxed(stack);
  aliases.write_back();
  for (size_t k = first; k < stack->size(); ++k) {
    c10::IValue& value = (*stack)[k];
    if (value.isTensor()) {
      value = aliases.device(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(aliases.device(tensor));
      value = list;
    }
  }
}

Allocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator)
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)
[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace

#define ON_CPU torch::CppFunction::makeFromBoxedFunction<&on_cpu>()

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(ON_CPU); }
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(ON_CPU); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(ON_CPU); }

// What the CPU has for sparse tensors: PyTorch's defaults, made for dense ones, would come before a fallback.
void take_over(torch::Library& library, c10::DispatchKey key) {
  for (const auto& name : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(key))
    if (name.name.rfind("aten::", 0) == 0)
      library.impl((name.name + (name.overload_name.empty() ? "" : "." + name.overload_name)).c_str(), ON_CPU);
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) { take_over(m, c10::DispatchKey::SparseCPU); }
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) { take_over(m, c10::DispatchKey::SparseCsrCPU); }
